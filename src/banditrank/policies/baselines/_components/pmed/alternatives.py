"""Alternative models that PMED has to rule out: the closest ones in which its ranking is not optimal.

The estimated model has factors θ and κ. In an alternative θ'_j = θ_j exp(u_j), and κ' follows, because the
cells of the leading ranking are shown so often that their products are known. At rank r an item j then has
the mean m_rj exp(u_j − u_l), l being the leading item of that rank. The leading ranking ceases to be optimal
where

* an item outside it becomes as good as its last one,
* two consecutive items of it become equally good, or
* two consecutive positions become equally examined,

each of which is an equation u_a − u_b = gap. The divergence Σ q_rj d(m_rj, m'_rj) of displays q is not convex
in θ' and κ', but it is convex in u. Its minimum under one equation is found by Newton's method.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal
from banditrank.policies._cholesky import cholesky_factor, solve_lower, solve_upper

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Newton(NamedTuple):
    """Shifts, their next step, and derivatives."""

    shifts: Floats  # (M,) u
    steps: Floats  # (M,)
    slopes: Floats  # (M,) first derivatives
    bends: Floats  # (M,) second derivatives
    ties: Floats  # (M, K) minus the mixed second derivatives of an item and a leading item
    matrix: Floats  # (K, K) second derivatives of leading items, with the others eliminated
    vector: Floats  # (K,) first derivatives likewise, then the steps


def init_newton(n_items: int, n_positions: int) -> Newton:
    """Return workspaces for a size of problem."""
    m, k = n_items, n_positions
    return Newton(
        *(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)),
        *(np.zeros((m, k)), np.zeros((k, k)), np.zeros(k)),
    )


@internal
def next_step(
    workspace: Newton,
    means: Floats,
    displays: Floats,
    leaders: NDArray[np.uintp],
    rank_of: Indices,
    raised: int,
    lowered: int,
) -> float:
    """Write the Newton step of every item for Σ q d(m, m'), and return the largest absolute step.

    Items outside the leading ranking interact with leading items only, and are eliminated.

    Parameters
    ----------
    workspace
        Shifts and workspace.
    means, displays
        m and q, shape (K, M).
    leaders, rank_of
        Leading items by rank, and the rank of each item, −1 for items that are not leading.
    raised, lowered
        Items of the equation, which move together.
    """
    _differentiate(workspace, means, displays, leaders, rank_of, raised, lowered)
    size = 0.0
    for j in range(rank_of.size):
        size += workspace.bends[j]
    _solve(workspace.matrix, workspace.vector, size)
    longest = 0.0
    for j in range(rank_of.size):
        own = rank_of[lowered if j == raised else j]
        step = 0.0
        if own >= 0:
            step = workspace.vector[own]
        elif workspace.bends[j] > 0.0:
            step = -workspace.slopes[j]
            for r in range(leaders.size):
                step += workspace.ties[j, r] * workspace.vector[r]
            step /= workspace.bends[j]
        workspace.steps[j] = step
        longest = max(longest, abs(step))
    return longest


@internal
def _differentiate(
    workspace: Newton,
    means: Floats,
    displays: Floats,
    leaders: NDArray[np.uintp],
    rank_of: Indices,
    raised: int,
    lowered: int,
) -> None:
    workspace.vector[:] = 0.0
    workspace.matrix[:] = 0.0
    workspace.ties[:] = 0.0
    for j in range(rank_of.size):
        workspace.slopes[j], workspace.bends[j] = 0.0, 0.0
        for r in range(leaders.size):
            if j == leaders[r] or displays[r, j] <= 0.0:
                continue
            slot = rank_of[lowered] if leaders[r] == raised else r
            mean = means[r, j]
            other = mean * math.exp(workspace.shifts[j] - workspace.shifts[leaders[r]])
            slope = displays[r, j] * (other - mean) / (1.0 - other)
            bend = displays[r, j] * other * (1.0 - mean) / (1.0 - other) ** 2
            workspace.slopes[j] += slope
            workspace.bends[j] += bend
            workspace.ties[j, slot] += bend
            workspace.vector[slot] -= slope
            workspace.matrix[slot, slot] += bend
        _take_in(workspace, j, rank_of[lowered if j == raised else j])


@internal
def _take_in(workspace: Newton, item: int, rank: int) -> None:
    """Add the derivatives of an item to those of its rank, or eliminate it if it has none."""
    slope, bend = workspace.slopes[item], workspace.bends[item]
    if rank >= 0:
        workspace.vector[rank] += slope
        workspace.matrix[rank, rank] += bend
        for r in range(workspace.vector.size):
            workspace.matrix[rank, r] -= workspace.ties[item, r]
            workspace.matrix[r, rank] -= workspace.ties[item, r]
    elif bend > 0.0:
        for r in range(workspace.vector.size):
            workspace.vector[r] += workspace.ties[item, r] * slope / bend
            for s in range(workspace.vector.size):
                workspace.matrix[r, s] -= workspace.ties[item, r] * workspace.ties[item, s] / bend


@internal
def _solve(matrix: Floats, vector: Floats, size: float) -> None:
    """Write minus the solution of matrix · x = vector into the vector, by a Cholesky factor.

    The divergence does not depend on a common shift: a small multiple of the identity makes the matrix
    regular.
    """
    for r in range(vector.size):
        matrix[r, r] += 1e-9 * size + 1e-300
    cholesky_factor(matrix, matrix, 1e-12 * size + 1e-300)
    solve_lower(matrix, vector)
    solve_upper(matrix, vector)
    for r in range(vector.size):
        vector[r] = -vector[r]


NEWTON_STEPS = 30
TOLERANCE = 1e-3  # of a step; the minimum changes by its square
MAX_STEP = 1.0
MAX_SHARE = 0.9  # of the way to a mean of 1 that a step may go
MIN_GAP = 1e-3  # distinguishing equal items would take forever


class Alternatives(NamedTuple):
    """The estimated model in the order of the leading ranking, the equations, and Newton's method."""

    means: Floats  # (K, M) m
    rank_of: Indices  # (M,) −1 for items that are not leading
    raised: Indices  # (F,) a
    lowered: Indices  # (F,) b
    gaps: Floats  # (F,)
    from_below: Indices  # (F,) 1 if the search starts from lowering b, 0 if from raising a
    newton: Newton


def init_alternatives(n_items: int, n_positions: int) -> Alternatives:
    """Return workspaces for a size of problem."""
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
    """Set the estimated model, and write the equations.

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
    workspace
        Estimated model.
    equation
        Index of the equation.
    displays
        q, shape (K, M), by rank. Those of the cells of the leading ranking are ignored.
    leaders
        Leading items by rank, shape (K,).
    cut
        Output, shape (K, M).
    """
    raised, lowered = workspace.raised[equation], workspace.lowered[equation]
    shifts, steps = workspace.newton.shifts, workspace.newton.steps
    shifts[:] = 0.0
    if workspace.from_below[equation] == 1:  # either way all means stay below the largest estimate
        shifts[lowered] = -workspace.gaps[equation]
    else:
        shifts[raised] = workspace.gaps[equation]
    for _ in range(NEWTON_STEPS):
        longest = next_step(
            workspace.newton, workspace.means, displays, leaders, workspace.rank_of, raised, lowered
        )
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
    """Return the share of a step, given its largest component, that keeps all means below 1."""
    shifts, steps = workspace.newton.shifts, workspace.newton.steps
    share = min(1.0, MAX_STEP / longest) if longest > 0.0 else 0.0
    for r in range(leaders.size):
        for j in range(shifts.size):
            step = steps[j] - steps[leaders[r]]
            if step * share > 0.0:
                shift = shifts[j] - shifts[leaders[r]]
                share = min(share, MAX_SHARE * (-math.log(workspace.means[r, j]) - shift) / step)
    return share


@compiled
def bernoulli_kl_interior(mean: float, other: float) -> float:
    """Return d(mean, other) of two Bernoulli distributions with means strictly between 0 and 1.

    Examples
    --------
    >>> round(bernoulli_kl_interior(0.2, 0.5), 4)  # 0.2 ln 0.4 + 0.8 ln 1.6
    0.1927
    """
    return mean * math.log(mean / other) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - other))
