"""The models that PMED has to rule out: the closest to its beliefs in which its ranking is not the best.

Believed are θ and κ. In another model θ'_j = θ_j exp(u_j), and κ' follows, for the cells of the leading
ranking are shown so often that their products cannot be different. At the slot of rank r an item j then has
the mean m_rj exp(u_j − u_l), l being the leading item of that slot. The leading ranking ceases to be the best
where

* an item that it leaves out becomes as good as its last one,
* two neighbouring items of it become equally good, or
* two neighbouring positions come to be looked at equally often,

each of which says that u_a − u_b has reached some gap. How well displays q tell the other model from the
believed one, Σ q_rj d(m_rj, m'_rj), is not a convex function of θ' and κ', but of u it is one. Its least
value under one such equation is found by Newton's method.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, internal
from banditrank.policies.baselines.components.pmed.newton import Newton, next_step, init_newton

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NEWTON_STEPS = 30
TOLERANCE = 1e-3  # a shorter step changes the least value by its square only
MAX_STEP = 1.0
WITHIN = 0.9  # how much of the way to a mean of 1 a step may go
MIN_GAP = 1e-3  # what is equally good would have to be told apart for ever


class Alternatives(NamedTuple):
    """Beliefs in the order of the leading ranking, the equations, and room for Newton's method."""

    means: Floats  # (K, M) m
    rank_of: Indices  # (M,) −1 for items that are not leading
    raised: Indices  # (F,) a
    lowered: Indices  # (F,) b
    gaps: Floats  # (F,)
    from_below: Indices  # (F,) 1 if the search starts from a lowered b, 0 if from a raised a
    newton: Newton


def init_alternatives(n_items: int, n_positions: int) -> Alternatives:
    """Return room for problems of a size."""
    m, k = n_items, n_positions
    equations = m - k + 2 * (k - 1)
    return Alternatives(
        np.zeros((k, m)),
        np.zeros(m, dtype=np.intp),
        np.zeros(equations, dtype=np.intp),
        np.zeros(equations, dtype=np.intp),
        np.zeros(equations),
        np.zeros(equations, dtype=np.intp),
        init_newton(m, k),
    )


@compiled
def set_beliefs(
    workspace: Alternatives,
    items: Floats,
    positions: Floats,
    leaders: NDArray[np.uintp],
    order: NDArray[np.uintp],
) -> None:
    """Take beliefs in, and lay the equations out.

    Parameters
    ----------
    items, positions
        θ and κ, all between 0 and 1.
    leaders, order
        The leading items by decreasing θ, the positions by decreasing κ, shape (K,).
    """
    n_positions, n_items = workspace.means.shape
    workspace.rank_of[:] = -1
    for r in range(n_positions):
        workspace.rank_of[leaders[r]] = r
        for j in range(n_items):
            workspace.means[r, j] = items[j] * positions[order[r]]
    equation = 0
    last = leaders[n_positions - 1]
    for j in range(n_items):
        if workspace.rank_of[j] < 0:
            _equate(workspace, equation, j, last, items[last] / items[j], 0)
            equation += 1
    for r in range(n_positions - 1):
        upper, lower = leaders[r], leaders[r + 1]
        _equate(workspace, equation, lower, upper, items[upper] / items[lower], 0)
        _equate(workspace, equation + 1, upper, lower, positions[order[r]] / positions[order[r + 1]], 1)
        equation += 2


@internal
def _equate(
    workspace: Alternatives, equation: int, raised: int, lowered: int, ratio: float, from_below: int
) -> None:
    workspace.raised[equation], workspace.lowered[equation] = raised, lowered
    workspace.gaps[equation] = max(math.log(ratio), MIN_GAP)
    workspace.from_below[equation] = from_below


@compiled
def find_closest(
    workspace: Alternatives, equation: int, displays: Floats, leaders: NDArray[np.uintp], cut: Floats
) -> float:
    """Write d(m, m') of the closest model that satisfies an equation, and return Σ q d(m, m').

    Parameters
    ----------
    room
        Holds the beliefs.
    equation
        Which.
    displays
        q, shape (K, M), slots in order of rank. That of the leading ranking's own cells is of no account.
    leaders
        Leading items in order of rank, shape (K,).
    cut
        Where to write, shape (K, M).
    """
    raised, lowered = workspace.raised[equation], workspace.lowered[equation]
    shifts, steps = workspace.newton.shifts, workspace.newton.steps
    shifts[:] = 0.0
    if workspace.from_below[equation] == 1:  # either way all means stay below the largest believed one
        shifts[lowered] = -workspace.gaps[equation]
    else:
        shifts[raised] = workspace.gaps[equation]
    for _ in range(NEWTON_STEPS):
        longest = next_step(workspace.newton, workspace.means, displays, leaders, workspace.rank_of, raised, lowered)
        share = _share(workspace, leaders, longest)
        for j in range(shifts.size):
            shifts[j] += share * steps[j]
        if share * longest < TOLERANCE:
            break
    total = 0.0
    for r in range(leaders.size):
        for j in range(shifts.size):
            mean = workspace.means[r, j]
            other = mean * math.exp(shifts[j] - shifts[leaders[r]])
            cut[r, j] = bernoulli_kl_interior(mean, other) if j != leaders[r] else 0.0
            total += displays[r, j] * cut[r, j]
    return total


@internal
def _share(workspace: Alternatives, leaders: NDArray[np.uintp], longest: float) -> float:
    """Return how much of a step can be made, its longest part given, so that all means stay below 1."""
    shifts, steps = workspace.newton.shifts, workspace.newton.steps
    share = min(1.0, MAX_STEP / longest) if longest > 0.0 else 0.0
    for r in range(leaders.size):
        for j in range(shifts.size):
            step = steps[j] - steps[leaders[r]]
            if step * share > 0.0:
                shift = shifts[j] - shifts[leaders[r]]
                share = min(share, WITHIN * (-math.log(workspace.means[r, j]) - shift) / step)
    return share


@compiled
def bernoulli_kl_interior(mean: float, other: float) -> float:
    """Return d(mean, other) of two Bernoulli laws, the means strictly between 0 and 1.

    Examples
    --------
    >>> round(bernoulli_kl_interior(0.2, 0.5), 4)  # 0.2 ln 0.4 + 0.8 ln 1.6
    0.1927
    """
    return mean * math.log(mean / other) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - other))
