"""Revised simplex method with column generation: columns are rankings, and pricing is an assignment problem.

Minimise Σ_v w_v Δ_v over w ≥ 0 so that Σ_v w_v D_f(v) ≥ 1 for every row f. Loss and gain of a ranking are
sums over its cells, so that the ranking with the least reduced cost, Δ_v − Σ_f price_f D_f(v), is a best
assignment.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import internal
from banditrank.solvers._assignment import AssignmentWorkspace, assign, new_assignment_workspace

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

MAX_PIVOTS = 400
TINY = 1e-10
RANKING, SURPLUS, ARTIFICIAL = range(3)  # kinds of basic variables


class Basis(NamedTuple):
    """The rows so far, and the basic variables, one per row."""

    losses: Floats  # (K, M) loss of a cell of a ranking
    gains: Floats  # (R, K, M) gain of a cell for each row
    rows: NDArray[np.int64]  # (1,) number of rows
    kinds: NDArray[np.int64]  # (R,) of the basic variables
    rankings: Indices  # (R, K) of those of kind RANKING
    costs: Floats  # (R,) of the basic variables
    levels: Floats  # (R,) their values
    inverse: Floats  # (R, R) of the basis
    prices: Floats  # (R,) of the rows
    column: Floats  # (R,) gains of the entering ranking
    direction: Floats  # (R,) decrease of the basic variables per unit of the entering one
    scores: Floats  # (K, M)
    candidate: Indices  # (K,) the entering ranking
    workspace: AssignmentWorkspace


def init_basis(n_items: int, n_positions: int, n_rows: int) -> Basis:
    """Return workspaces for a size of problem."""
    m, k, r = n_items, n_positions, n_rows
    return Basis(
        *(np.zeros((k, m)), np.zeros((r, k, m)), np.zeros(1, dtype=np.int64), np.zeros(r, dtype=np.int64)),
        *(np.zeros((r, k), dtype=np.uintp), np.zeros(r), np.zeros(r), np.zeros((r, r))),
        *(np.zeros(r), np.zeros(r), np.zeros(r)),
        *(np.zeros((k, m)), np.zeros(k, dtype=np.uintp), new_assignment_workspace(m, k)),
    )


@internal
def add_row(basis: Basis, missing: float) -> None:
    """Add the next row, whose gains are already written and whose left side is ``missing`` too small.

    An artificial variable fills the difference, at a hundred times the cost of satisfying the row with the
    one ranking of the largest gain. Rows without a gain of any ranking are left out.
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
    """Pivot while the cost decreases."""
    rows = basis.rows[0]
    for _ in range(MAX_PIVOTS):
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
    """Write the price of each row; return the row with the most negative price, −1 if there is none."""
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
    """Write the ranking with the least reduced cost and its gains; return minus the reduced cost."""
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
    """Replace the basic variable that reaches 0 first by the entering one; return whether there is one."""
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
