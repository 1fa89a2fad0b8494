"""Rankings that differ a little from one: what comes next if it is not the best."""

from itertools import islice, permutations
from math import perm

import numpy as np
from numpy.typing import NDArray

from banditrank.model.known import ProblemLike
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_RANKINGS = 1000
"""If there are no more than these, all of them are looked at."""

_MOST_COMPARED = 64  # of those that are one step away, by the whole utility
_STEP = 1e-6


def all_rankings(n_items: int, n_positions: int) -> Places | None:
    """Return all rankings, one a row; None if there are too many."""
    if perm(n_items, n_positions) > MOST_RANKINGS:
        return None
    return np.array(list(permutations(range(n_items), n_positions)), dtype=np.intp)


def next_best(known: ProblemLike, ranking: Places, utility: Utility) -> Places | None:
    """Return the best ranking but for one, None if there is no other.

    Where there are too many to look at all of them, it is the best of those that differ by an exchange of
    two items, or by one item. For a single user type that is the best of all others, too.

    Parameters
    ----------
    known
        The world, of one type or of several.
    ranking
        The best one, shape (K,).
    utility
        What makes a ranking better than another.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> from banditrank.utilities.utility import NASH
    >>> next_best(kdd2012(), np.array([2, 3]), NASH)
    array([3, 2])
    """
    others = all_rankings(known.item_means.shape[1], ranking.size)
    if others is None:
        others = _one_step_away(known, ranking, utility)
    others = others[(others != ranking).any(axis=1)]
    if not len(others):
        return None
    totals = utility.collectives(known.arrival_rates, values_of_rankings(known, others))
    best: Places = others[int(np.argmax(totals))]
    return best


def values_of_rankings(known: ProblemLike, rankings: Places) -> Floats:
    """Return what rankings, shape (C, K), are worth to each type, shape (C, N)."""
    return np.asarray(np.einsum("ik,ick->ci", known.position_preferences, known.item_means[:, rankings]))


def _one_step_away(known: ProblemLike, ranking: Places, utility: Utility) -> Places:
    """Return the most promising rankings that differ by an exchange, or by one item."""
    rho, mu = known.position_preferences, known.item_means
    n_positions, n_items = ranking.size, mu.shape[1]
    values = np.einsum("ik,ik->i", rho, mu[:, ranking])
    slopes = _slopes(utility, known.arrival_rates, values)
    weighted = slopes[:, None] * rho  # (N, K)
    gains = weighted.T @ mu  # (K, M): what an item earns at a position, about
    present = gains[np.arange(n_positions), ranking]
    replaced = gains - present[:, None]
    replaced[:, ranking] = -np.inf
    exchanged = gains[:, ranking] + gains[:, ranking].T - present[:, None] - present  # (K, K)
    exchanged[np.tril_indices(n_positions)] = -np.inf
    both = np.concatenate([replaced.ravel(), exchanged.ravel()])
    best_first = np.argsort(-both, kind="stable")
    steps = islice((step for step in best_first.tolist() if both[step] > -np.inf), _MOST_COMPARED)
    changed = []
    for step in steps:
        other = ranking.copy()
        if step < replaced.size:
            position, item = divmod(step, n_items)
            other[position] = item
        else:
            one, two = divmod(step - replaced.size, n_positions)
            other[[one, two]] = ranking[[two, one]]
        changed.append(other)
    return np.array(changed, dtype=np.intp).reshape(-1, n_positions)


def _slopes(utility: Utility, weights: Floats, values: Floats) -> Floats:
    """Return by how much the collective utility grows with each type's value; the weights where it cannot."""
    steps = values + np.eye(values.size) * _STEP
    present = utility.collective(weights, values)
    with np.errstate(invalid="ignore"):  # −∞ less −∞, where a type gets nothing
        slopes = (utility.collectives(weights, steps) - present) / _STEP
    return np.where(np.isfinite(slopes), slopes, weights)
