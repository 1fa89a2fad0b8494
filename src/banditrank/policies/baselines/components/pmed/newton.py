"""Newton's method for the shifts of `alternatives`. Items that do not lead meet leading ones only."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import internal
from banditrank.policies.cholesky import cholesky_factor, solve_lower, solve_upper

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Newton(NamedTuple):
    """Shifts, their next step, and the derivatives that it comes from."""

    shifts: Floats  # (M,) u
    steps: Floats  # (M,)
    slopes: Floats  # (M,) first derivatives
    bends: Floats  # (M,) second derivatives
    ties: Floats  # (M, K) minus the second derivatives by an item and a leading item
    matrix: Floats  # (K, K) second derivatives by leading items, the others eliminated
    vector: Floats  # (K,) first derivatives likewise, then their steps


def init_newton(n_items: int, n_positions: int) -> Newton:
    """Return room for problems of a size."""
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
    """Write Newton's step of every item for Σ q d(m, m'), and return the length of the longest.

    Parameters
    ----------
    room
        Holds the shifts.
    means, displays
        m and q, shape (K, M).
    leaders, rank_of
        The leading items by rank, and the other way round, −1 for items that are not leading.
    raised, lowered
        Items that move together.
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
    """Add an item's own derivatives to those of its rank, or eliminate it if it has none."""
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
    """Write minus the solution of matrix · x = vector into the vector, by Cholesky's factors.

    Moving all shifts alike changes nothing: a little weight, compared with the size, holds them.
    """
    for r in range(vector.size):
        matrix[r, r] += 1e-9 * size + 1e-300
    cholesky_factor(matrix, matrix, 1e-12 * size + 1e-300)
    solve_lower(matrix, vector)
    solve_upper(matrix, vector)
    for r in range(vector.size):
        vector[r] = -vector[r]
