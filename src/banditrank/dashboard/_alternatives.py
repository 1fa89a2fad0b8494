"""Alternatives to a ranking: all rankings, or those in its neighbourhood."""

from itertools import islice, permutations
from math import perm

import numpy as np
from numpy.typing import NDArray

from banditrank.model._problem import ProblemLike
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]
Rankings = NDArray[np.intp]

MAX_ENUMERATED = 1000
"""Maximum number of rankings that are enumerated."""

_MAX_NEIGHBOURS = 64  # that are compared by the utility itself, not its gradient
_GRADIENT_STEP = 1e-6


def enumerate_rankings(n_items: int, n_positions: int) -> Rankings | None:
    """Return all rankings, shape (R, K); None if there are more than `MAX_ENUMERATED`."""
    if perm(n_items, n_positions) > MAX_ENUMERATED:
        return None
    return np.array(list(permutations(range(n_items), n_positions)), dtype=np.intp)


def find_runner_up(problem: ProblemLike, ranking: Rankings, utility: Utility) -> Rankings | None:
    """Return the best of all other rankings, shape (K,); None if there is no other.

    If there are too many to enumerate, it is the best ranking that swaps two items of the given one, or
    replaces one. For a single user type that is the best of all others, too.

    Parameters
    ----------
    problem
        The problem, of one user type or several.
    ranking
        The best ranking, shape (K,).
    utility
        The utility that rankings are compared by.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.utilities._utility import NASH
    >>> find_runner_up(kdd2012(), np.array([2, 3]), NASH)
    array([3, 2])
    """
    others = enumerate_rankings(problem.item_means.shape[1], ranking.size)
    if others is None:
        others = _neighbours(problem, ranking, utility)
    others = others[(others != ranking).any(axis=1)]
    if not len(others):
        return None
    totals = utility.collectives(problem.arrival_rates, ranking_values(problem, others))
    best: Rankings = others[int(np.argmax(totals))]
    return best


def ranking_values(problem: ProblemLike, rankings: Rankings) -> Floats:
    """Return the values of rankings, shape (R, K), to each user type, shape (R, N)."""
    return np.asarray(np.einsum("ik,irk->ri", problem.position_preferences, problem.item_means[:, rankings]))


def _neighbours(problem: ProblemLike, ranking: Rankings, utility: Utility) -> Rankings:
    """Return the most promising rankings that swap two items or replace one, shape (R, K)."""
    rho, mu = problem.position_preferences, problem.item_means
    n_positions, n_items = ranking.size, mu.shape[1]
    values = np.einsum("ik,ik->i", rho, mu[:, ranking])
    gradient = _utility_gradient(utility, problem.arrival_rates, values)
    scores = (gradient[:, None] * rho).T @ mu  # (K, M): first-order utility of an item at a position
    present = scores[np.arange(n_positions), ranking]
    replace_gains = scores - present[:, None]  # (K, M)
    replace_gains[:, ranking] = -np.inf
    swap_gains = scores[:, ranking] + scores[:, ranking].T - present[:, None] - present  # (K, K)
    swap_gains[np.tril_indices(n_positions)] = -np.inf
    gains = np.concatenate([replace_gains.ravel(), swap_gains.ravel()])
    best_first = np.argsort(-gains, kind="stable")
    moves = islice((move for move in best_first.tolist() if gains[move] > -np.inf), _MAX_NEIGHBOURS)
    neighbours = []
    for move in moves:
        neighbour = ranking.copy()
        if move < replace_gains.size:
            position, item = divmod(move, n_items)
            neighbour[position] = item
        else:
            one, two = divmod(move - replace_gains.size, n_positions)
            neighbour[[one, two]] = ranking[[two, one]]
        neighbours.append(neighbour)
    return np.array(neighbours, dtype=np.intp).reshape(-1, n_positions)


def _utility_gradient(utility: Utility, weights: Floats, values: Floats) -> Floats:
    """Return the derivative of the collective utility by each value; the weight where there is none."""
    steps = values + np.eye(values.size) * _GRADIENT_STEP
    present = utility.collective(weights, values)
    with np.errstate(invalid="ignore"):  # −∞ less −∞ where the value of a user type is 0
        gradient = (utility.collectives(weights, steps) - present) / _GRADIENT_STEP
    return np.where(np.isfinite(gradient), gradient, weights)
