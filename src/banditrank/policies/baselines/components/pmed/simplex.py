"""The revised simplex method, when columns are rankings: the one worth the most is found by assignment.

Minimise Σ_v w_v Δ_v over w ≥ 0 so that Σ_v w_v D_f(v) ≥ 1 for every row f. Loss and gain of a ranking are
sums over its cells, so the ranking of least reduced cost, Δ_v − Σ_f price_f D_f(v), is the best assignment.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import internal
from banditrank.solvers.assignment import AssignmentWorkspace, assign, new_assignment_workspace

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

PIVOTS = 400
TINY = 1e-10
RANKING, SURPLUS, ARTIFICIAL = range(3)  # what a basic variable is


class Basis(NamedTuple):
    """The rows so far, and as many basic variables."""

    losses: Floats  # (K, M) what a cell of a ranking loses
    gains: Floats  # (R, K, M) what it brings to each row
    rows: NDArray[np.int64]  # (1,) how many there are
    kinds: NDArray[np.int64]  # (R,) of the basic variables
    rankings: Indices  # (R, K) of those that are one
    costs: Floats  # (R,) of the basic variables
    levels: Floats  # (R,) their values
    inverse: Floats  # (R, R) of the basis
    prices: Floats  # (R,) of the rows
    column: Floats  # (R,) what the entering ranking brings
    direction: Floats  # (R,) how fast the basic variables fall as something enters
    scores: Floats  # (K, M)
    candidate: Indices  # (K,) the ranking that enters
    workspace: AssignmentWorkspace


def init_basis(n_items: int, n_positions: int, n_rows: int) -> Basis:
    """Return room for problems of a size."""
    m, k, r = n_items, n_positions, n_rows
    return Basis(
        *(np.zeros((k, m)), np.zeros((r, k, m)), np.zeros(1, dtype=np.int64), np.zeros(r, dtype=np.int64)),
        *(np.zeros((r, k), dtype=np.uintp), np.zeros(r), np.zeros(r), np.zeros((r, r))),
        *(np.zeros(r), np.zeros(r), np.zeros(r)),
        *(np.zeros((k, m)), np.zeros(k, dtype=np.uintp), new_assignment_workspace(m, k)),
    )


@internal
def add_row(basis: Basis, missing: float) -> None:
    """Take the next row in, whose gains stand already and of which so much is missing.

    An artificial variable makes up for it, at a prohibitive cost: that of satisfying the row with the one
    ranking that brings the most, a hundred times. Rows that no ranking brings anything to are left out.
    """
    row = basis.rows[0]
    most = assign(basis.gains[row], basis.losses.shape[1], basis.workspace, basis.candidate)
    if most <= TINY:
        return
    loss = 0.0
    for r in range(basis.candidate.size):
        loss += basis.losses[r, basis.candidate[r]]
    for f in range(row):
        basis.inverse[row, f] = 0.0
        basis.inverse[f, row] = 0.0
    for b in range(row):
        if basis.kinds[b] == RANKING:
            gain = _gain(basis, row, basis.rankings[b])
            for f in range(row):
                basis.inverse[row, f] -= gain * basis.inverse[b, f]
    basis.inverse[row, row] = 1.0
    basis.kinds[row], basis.costs[row], basis.levels[row] = ARTIFICIAL, 100.0 * loss / most + 1.0, missing
    basis.rows[0] = row + 1


@internal
def _gain(basis: Basis, row: int, ranking: Indices) -> float:
    gain = 0.0
    for r in range(ranking.size):
        gain += basis.gains[row, r, ranking[r]]
    return gain


@internal
def optimise(basis: Basis) -> None:
    """Exchange basic variables while that lowers the cost."""
    rows = basis.rows[0]
    for _ in range(PIVOTS):
        cheapest = _set_prices(basis)
        kind, cost = SURPLUS, 0.0
        if cheapest >= 0:
            for b in range(rows):
                basis.direction[b] = -basis.inverse[b, cheapest]
        else:
            kind = RANKING
            worth = _find_ranking(basis)
            for r in range(basis.candidate.size):
                cost += basis.losses[r, basis.candidate[r]]
            if worth <= 1e-7 * (cost + worth) + 1e-14:
                return
            for b in range(rows):
                fall = 0.0
                for f in range(rows):
                    fall += basis.inverse[b, f] * basis.column[f]
                basis.direction[b] = fall
        if not _pivot(basis, kind, cost):
            return


@internal
def _set_prices(basis: Basis) -> int:
    """Write the price of each row, and return the row of the most negative one, −1 if there is none."""
    rows = basis.rows[0]
    cheapest, lowest, highest = -1, 0.0, 0.0
    for f in range(rows):
        price = 0.0
        for b in range(rows):
            price += basis.costs[b] * basis.inverse[b, f]
        basis.prices[f] = price
        highest = max(highest, abs(price))
        if price < lowest:
            cheapest, lowest = f, price
    return cheapest if lowest < -TINY * highest else -1


@internal
def _find_ranking(basis: Basis) -> float:
    """Write the ranking that is worth the most and what it brings to each row; return worth less loss."""
    n_positions, n_items = basis.losses.shape
    for r in range(n_positions):
        for j in range(n_items):
            basis.scores[r, j] = -basis.losses[r, j]
    for f in range(basis.rows[0]):
        for r in range(n_positions):
            for j in range(n_items):
                basis.scores[r, j] += basis.prices[f] * basis.gains[f, r, j]
    total = assign(basis.scores, n_items, basis.workspace, basis.candidate)
    for f in range(basis.rows[0]):
        basis.column[f] = _gain(basis, f, basis.candidate)
    return total


@internal
def _pivot(basis: Basis, kind: int, cost: float) -> bool:
    """Let what enters take the place of the basic variable that reaches 0 first; return whether one does."""
    rows = basis.rows[0]
    direction, levels, inverse = basis.direction, basis.levels, basis.inverse
    leaving, level = -1, np.inf
    for b in range(rows):
        if direction[b] > TINY and levels[b] < level * direction[b]:
            leaving, level = b, levels[b] / direction[b]
    if leaving < 0:
        return False
    for f in range(rows):
        inverse[leaving, f] /= direction[leaving]
    for b in range(rows):
        if b != leaving:
            levels[b] = max(0.0, levels[b] - level * direction[b])
            for f in range(rows):
                inverse[b, f] -= direction[b] * inverse[leaving, f]
    levels[leaving] = level
    basis.kinds[leaving], basis.costs[leaving] = kind, cost
    for r in range(basis.candidate.size):
        basis.rankings[leaving, r] = basis.candidate[r]
    return True
