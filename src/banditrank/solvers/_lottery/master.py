"""The restricted master: the best mixture of the columns found so far, by a reduced-gradient method.

Maximise Φ(Σ_c x_c v_c) + Σ_c x_c p_c over x ≥ 0 with Σ_c x_c r_c = right, where column c has the values v_c
to the N types, the profit p_c and the coefficients r_c in the R rows. Φ(u) = Σ_i w_i f(u_i) is concave.

R columns are basic: the rows determine their amounts. All others are 0, except for a few superbasic columns,
which Newton's method moves in the space of the types' values (Murtagh and Saunders 1978). If a combination of
superbasic columns does not curve Φ, the mixture moves along it until a column reaches 0. So a linear Φ is
maximised by the simplex method, and at most as many columns are superbasic as the optimum needs.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.utilities._formulas import MINIMUM, CompiledUtility, curvature_of, slope_of, utility_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

N_COLUMNS, N_SUPERS, PIVOTS, STALLED = range(4)  # indices of Master.counts
# Values of Master.places of columns without a row. Formulas would be compiled once more for each literal.
NONBASIC: Any = np.int64(-1)
SUPERBASIC: Any = np.int64(-2)
_NONE: Any = np.int64(-1)  # no index found, typed for the same reason

_MAX_STEPS = 2000
_NEGLIGIBLE = 1e-24  # relative gain of a step that rounding errors hide
_SINGULAR = 1e-12  # relative curvature below which a direction does not curve the objective
_MIN_PIVOT = 1e-9  # relative to the largest change of an amount
_REFACTOR = 80  # pivots between two factorisations of the basis
_MAX_STALLED = 30  # steps of length 0, after which the first column that improves enters (Bland)


class MasterObjective(NamedTuple):
    """Φ: the part of the objective that depends on the types' values."""

    utility: CompiledUtility
    weights: Floats  # (N,) w, 0 for types that do not count
    floors: Floats  # (N,) below which f is extended by its tangent


class Master(NamedTuple):
    """Columns, the current mixture, and workspace."""

    values: Floats  # (N, C) v, by column
    rows: Floats  # (R, C) r, by column
    profits: Floats  # (C,) p
    amounts: Floats  # (C,) x
    places: Integers  # (C,) row of a basic column, NONBASIC or SUPERBASIC
    reduced: Floats  # (C,) reduced profits of the last pricing
    right: Floats  # (R,)
    duals: Floats  # (R,)
    basis: Integers  # (R,) the basic column of each row
    inverse: Floats  # (R, R) of the matrix of basic columns
    factor: Floats  # (R, R) workspace
    change: Floats  # (R,) workspace: decrease of the basic amounts
    basic_profits: Floats  # (R,) slopes of the objective in the basic amounts
    supers: Integers  # (S,) superbasic columns
    tableau: Floats  # (S, R) superbasic columns in terms of the basic ones
    bends: Floats  # (S, N) change of the values for each unit of a superbasic column
    gradient: Floats  # (S,)
    hessian: Floats  # (S, S), replaced by its Cholesky factor
    step: Floats  # (S,)
    mixture: Floats  # (N,) u
    slopes: Floats  # (N,) w_i f'(u_i)
    curvatures: Floats  # (N,) −w_i f''(u_i)
    drift: Floats  # (N,) change of the values along the step
    counts: Integers  # (4,)


def new_master(n_user_types: int, n_rows: int, n_columns: int) -> Master:
    """Allocate a master for the given sizes."""
    n, r, c, s = n_user_types, n_rows, n_columns, n_user_types + 2
    return Master(
        *(np.zeros((n, c)), np.zeros((r, c)), np.zeros(c), np.zeros(c)),
        *(np.zeros(c, dtype=np.int64), np.zeros(c)),
        *(np.zeros(r), np.zeros(r)),
        np.zeros(r, dtype=np.int64),
        *(np.zeros((r, r)), np.zeros((r, r)), np.zeros(r), np.zeros(r)),
        np.zeros(s, dtype=np.int64),
        *(np.zeros((s, r)), np.zeros((s, n))),
        *(np.zeros(s), np.zeros((s, s)), np.zeros(s)),
        *(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)),
        np.zeros(4, dtype=np.int64),
    )


@internal
def height_of(objective: MasterObjective, values: Floats) -> float:
    """Return Φ; 0 for maximin, which is a profit."""
    total = 0.0
    if objective.utility.code != MINIMUM:
        for i in range(values.size):
            if objective.weights[i] > 0.0:
                point = max(values[i], objective.floors[i])
                below = values[i] - point
                height = utility_of(objective.utility, point)
                if below < 0.0:
                    height += below * slope_of(objective.utility, point)
                total += objective.weights[i] * height
    return total


@internal
def improve_master(objective: MasterObjective, master: Master, tolerance: float) -> bool:
    """Improve the mixture until no column has a reduced profit above the tolerance.

    Return whether that succeeded. The duals and the mixture are those of the final amounts.
    """
    counts = master.counts
    counts[STALLED] = 0
    for _ in range(_MAX_STEPS):
        if counts[PIVOTS] >= _REFACTOR and not factorise(master):
            return False
        _differentiate(objective, master)
        gain, is_flat = _find_step(master)
        if not is_flat and (_largest_gradient(master) <= tolerance or gain <= _NEGLIGIBLE * _lift(master)):
            enters = _price_columns(master, tolerance)
            if enters < 0:
                return True
            if not _add_super(master, enters):
                return False
            gain, is_flat = _find_step(master)
        if not _move(objective, master, 1 if is_flat else 0):
            return False
    return False


@inlined
def _largest_gradient(master: Master) -> float:
    largest = 0.0
    for s in range(master.counts[N_SUPERS]):
        largest = max(largest, abs(master.gradient[s]))
    return largest


@inlined
def _lift(master: Master) -> float:
    total = 0.0
    for i in range(master.mixture.size):
        total += master.slopes[i] * master.mixture[i]
    return total


@internal
def factorise(master: Master) -> bool:
    """Invert the basis, and recompute the basic amounts and the tableau; return False if it is singular."""
    n_rows = master.basis.size
    inverse, factor, counts = master.inverse, master.factor, master.counts
    counts[PIVOTS] = 0
    for row in range(n_rows):
        for place in range(n_rows):
            factor[row, place] = master.rows[row, master.basis[place]]
            inverse[row, place] = 1.0 if row == place else 0.0
    for place in range(n_rows):
        best = place
        for row in range(place + 1, n_rows):
            if abs(factor[row, place]) > abs(factor[best, place]):
                best = row
        pivot = factor[best, place]
        if not abs(pivot) > 1e-13:
            return False
        for other in range(n_rows):
            factor[place, other], factor[best, other] = factor[best, other], factor[place, other]
            inverse[place, other], inverse[best, other] = inverse[best, other], inverse[place, other]
        for other in range(n_rows):
            factor[place, other] /= pivot
            inverse[place, other] /= pivot
        for row in range(n_rows):
            if row != place:
                amount = factor[row, place]
                if amount != 0.0:
                    for other in range(n_rows):
                        factor[row, other] -= amount * factor[place, other]
                        inverse[row, other] -= amount * inverse[place, other]
    for s in range(counts[N_SUPERS]):
        _write_tableau(master, s)
    for place in range(n_rows):
        amount = 0.0
        for row in range(n_rows):
            amount += inverse[place, row] * master.right[row]
        for s in range(counts[N_SUPERS]):
            amount -= master.tableau[s, place] * master.amounts[master.supers[s]]
        master.amounts[master.basis[place]] = amount
    return True


@inlined
def _write_tableau(master: Master, s: int) -> None:
    """Write a superbasic column in terms of the basic ones."""
    column = master.supers[s]
    for place in range(master.basis.size):
        master.tableau[s, place] = 0.0
    for row in range(master.basis.size):
        coefficient = master.rows[row, column]
        if coefficient != 0.0:  # a ranking has few items with guarantees
            for place in range(master.basis.size):
                master.tableau[s, place] += coefficient * master.inverse[place, row]


@internal
def mix(master: Master) -> None:
    """Write the values of the mixture."""
    for i in range(master.mixture.size):
        master.mixture[i] = 0.0
    for place in range(master.basis.size):
        column = master.basis[place]
        amount = master.amounts[column]
        if amount != 0.0:
            for i in range(master.mixture.size):
                master.mixture[i] += amount * master.values[i, column]
    for s in range(master.counts[N_SUPERS]):
        column = master.supers[s]
        for i in range(master.mixture.size):
            master.mixture[i] += master.amounts[column] * master.values[i, column]


@internal
def _differentiate(objective: MasterObjective, master: Master) -> None:
    """Write the values of the mixture, and the derivatives of the objective there."""
    n, n_rows = master.mixture.size, master.basis.size
    mix(master)
    is_smooth = objective.utility.code != MINIMUM
    for i in range(n):
        master.slopes[i], master.curvatures[i] = 0.0, 0.0
        weight = objective.weights[i]
        if is_smooth and weight > 0.0:
            point = max(master.mixture[i], objective.floors[i])
            slope = slope_of(objective.utility, point)
            master.slopes[i] = weight * slope
            master.curvatures[i] = weight * curvature_of(objective.utility, point, slope)
    for row in range(n_rows):
        master.duals[row] = 0.0
    for place in range(n_rows):
        column = master.basis[place]
        profit = master.profits[column]
        for i in range(n):
            profit += master.slopes[i] * master.values[i, column]
        master.basic_profits[place] = profit
        if profit != 0.0:
            for row in range(n_rows):
                master.duals[row] += profit * master.inverse[place, row]
    for s in range(master.counts[N_SUPERS]):
        _differentiate_super(master, s)


@inlined
def _differentiate_super(master: Master, s: int) -> None:
    """Write the reduced profit of a superbasic column, and how it changes the values."""
    column = master.supers[s]
    rise = master.profits[column]
    for i in range(master.mixture.size):
        rise += master.slopes[i] * master.values[i, column]
        master.bends[s, i] = master.values[i, column]
    for place in range(master.basis.size):
        amount = master.tableau[s, place]
        if amount != 0.0:
            for i in range(master.mixture.size):
                master.bends[s, i] -= amount * master.values[i, master.basis[place]]
    for row in range(master.basis.size):
        rise -= master.duals[row] * master.rows[row, column]
    master.gradient[s] = rise


@internal
def _find_step(master: Master) -> tuple[float, bool]:
    """Write the step of the superbasic amounts; return the expected gain, and whether the step is flat.

    A flat step is a combination of columns that does not curve the objective, in the direction in which the
    objective does not fall.
    """
    hessian, step, n_supers = master.hessian, master.step, master.counts[N_SUPERS]
    for s in range(n_supers):
        for other in range(s + 1):
            total = 0.0
            for i in range(master.mixture.size):
                total += master.curvatures[i] * master.bends[s, i] * master.bends[other, i]
            hessian[s, other] = total
    for s in range(n_supers):
        size = hessian[s, s]
        for other in range(s):
            for inner in range(other):
                hessian[s, other] -= hessian[s, inner] * hessian[other, inner]
            hessian[s, other] /= hessian[other, other]
            hessian[s, s] -= hessian[s, other] * hessian[s, other]
        if not hessian[s, s] > _SINGULAR * size:
            for other in range(n_supers):
                step[other] = 0.0
            step[s] = 1.0
            for other in range(s):
                step[other] = -hessian[s, other]
            _solve_upper(hessian, s, step)
            rise = 0.0
            for other in range(s + 1):
                rise += step[other] * master.gradient[other]
            if rise < 0.0:
                for other in range(s + 1):
                    step[other] = -step[other]
            return abs(rise), True
        hessian[s, s] = np.sqrt(hessian[s, s])
    gain = 0.0
    for s in range(n_supers):
        total = master.gradient[s]
        for other in range(s):
            total -= hessian[s, other] * step[other]
        step[s] = total / hessian[s, s]
        gain += 0.5 * step[s] * step[s]
    _solve_upper(hessian, n_supers, step)
    return gain, False


@inlined
def _solve_upper(factor: Floats, size: int, solution: Floats) -> None:
    """Solve Lᵀ x = b in place."""
    for s in range(size - 1, -1, -1):
        for other in range(s + 1, size):
            solution[s] -= factor[other, s] * solution[other]
        solution[s] /= factor[s, s]


@internal
def _price_columns(master: Master, tolerance: float) -> int:
    """Return the column of the largest reduced profit above the tolerance, −1 if there is none."""
    count = master.counts[N_COLUMNS]
    reduced = master.reduced
    for c in range(count):
        reduced[c] = master.profits[c]
    for i in range(master.mixture.size):
        slope = master.slopes[i]
        if slope != 0.0:
            for c in range(count):
                reduced[c] += slope * master.values[i, c]
    for row in range(master.basis.size):
        dual = master.duals[row]
        if dual != 0.0:
            for c in range(count):
                reduced[c] -= dual * master.rows[row, c]
    enters, most = -1, tolerance
    for c in range(count):
        if reduced[c] > most and master.places[c] == NONBASIC:
            enters, most = c, reduced[c]
            if master.counts[STALLED] > _MAX_STALLED:
                break
    return enters


@internal
def _add_super(master: Master, column: int) -> bool:
    """Make a column superbasic; return False if there is no room."""
    s = master.counts[N_SUPERS]
    if s == master.supers.size:
        return False
    master.supers[s] = column
    master.places[column] = SUPERBASIC
    master.amounts[column] = 0.0
    master.counts[N_SUPERS] = s + 1
    _write_tableau(master, s)
    _differentiate_super(master, s)
    return True


@internal
def _remove_super(master: Master, s: int, place: int) -> None:
    """Make a superbasic column nonbasic, or basic if ``place`` is the row that it takes."""
    last = master.counts[N_SUPERS] - 1
    master.places[master.supers[s]] = place
    master.counts[N_SUPERS] = last
    for other in range(s, last):  # in the order in which they became superbasic
        master.supers[other] = master.supers[other + 1]
        for row in range(master.basis.size):
            master.tableau[other, row] = master.tableau[other + 1, row]


@internal
def _move(objective: MasterObjective, master: Master, is_flat: int) -> bool:
    """Move along the step until the objective falls or an amount reaches 0, and update the basis.

    Return False if there is no limit, which only rounding errors can cause.
    """
    n_supers, n_rows, step, change = (
        master.counts[N_SUPERS],
        master.basis.size,
        master.step,
        master.change,
    )
    largest, rise = 0.0, 0.0
    for s in range(n_supers):
        largest = max(largest, abs(step[s]))
        rise += step[s] * master.profits[master.supers[s]]
    for place in range(n_rows):
        total = 0.0
        for s in range(n_supers):
            total += step[s] * master.tableau[s, place]
        change[place] = total
        rise -= total * master.profits[master.basis[place]]
    for i in range(master.mixture.size):
        total = 0.0
        for s in range(n_supers):
            total += step[s] * master.bends[s, i]
        master.drift[i] = total
    # The first amount that reaches 0: a superbasic column, or a basic one in n_supers + its row.
    length, blocks, size = np.inf, _NONE, 0.0
    for s in range(n_supers):
        if step[s] < 0.0:
            reach = master.amounts[master.supers[s]] / -step[s]
            if reach < length:
                length, blocks, size = reach, s, -step[s]
    for place in range(n_rows):
        if change[place] > _MIN_PIVOT * largest:
            reach = max(0.0, master.amounts[master.basis[place]]) / change[place]
            if reach < length or (reach == length and change[place] > size):
                length, blocks, size = reach, n_supers + place, change[place]
    if blocks < 0 and is_flat == 1:
        return False
    chosen = _search_line(objective, master, rise, length, is_flat)
    master.counts[STALLED] = master.counts[STALLED] + 1 if chosen * largest <= 1e-15 else 0
    for s in range(n_supers):
        master.amounts[master.supers[s]] += chosen * step[s]
    for place in range(n_rows):
        master.amounts[master.basis[place]] -= chosen * change[place]
    if chosen < length:
        return True
    if blocks < n_supers:
        master.amounts[master.supers[blocks]] = 0.0
        _remove_super(master, blocks, NONBASIC)
        return True
    return _pivot(master, blocks - n_supers)


@inlined
def _search_line(
    objective: MasterObjective, master: Master, rise: float, longest: float, is_flat: int
) -> float:
    """Return the length of the step, at most ``longest``: safeguarded Newton on the slope along the step."""
    if objective.utility.code == MINIMUM:
        return longest
    low, high, first = 0.0, longest, 0.0
    at = 0.0
    for trial in range(40):
        slope, bend = rise, 0.0
        for i in range(master.drift.size):
            if objective.weights[i] > 0.0 and master.drift[i] != 0.0:
                point = max(master.mixture[i] + at * master.drift[i], objective.floors[i])
                here = slope_of(objective.utility, point)
                slope += objective.weights[i] * here * master.drift[i]
                fall = curvature_of(objective.utility, point, here)
                bend += objective.weights[i] * fall * master.drift[i] * master.drift[i]
        if trial == 0:
            first = max(slope, 0.0)
            at = longest if is_flat == 1 else min(1.0, longest)
            continue
        if slope >= 0.0:
            if at >= longest or slope <= 1e-3 * first:
                return at
            low = at
        else:
            if -slope <= 1e-3 * first or (is_flat == 1 and -slope <= 1e-14):
                return at
            high = at
        at = at + slope / bend if bend > 0.0 else np.inf
        if not low < at < high:
            if slope >= 0.0 and high == longest and longest < np.inf:
                at = longest
            elif high == np.inf:
                at = 4.0 * low
            else:
                at = 0.5 * (low + high) if low > 0.0 else 0.1 * high
    return low


@internal
def _pivot(master: Master, place: int) -> bool:
    """Replace the basic column of a row, whose amount is 0, by a superbasic one."""
    tableau, inverse, n_rows = master.tableau, master.inverse, master.basis.size
    enters = _NONE
    for s in range(master.counts[N_SUPERS]):
        if enters < 0 or abs(tableau[s, place]) > abs(tableau[enters, place]):
            enters = s
    pivot = tableau[enters, place]
    if not abs(pivot) > 1e-12:
        return False
    for row in range(n_rows):
        inverse[place, row] /= pivot
    for s in range(master.counts[N_SUPERS]):
        if s != enters:
            tableau[s, place] /= pivot
    for other in range(n_rows):
        amount = tableau[enters, other]
        if other != place and amount != 0.0:
            for row in range(n_rows):
                inverse[other, row] -= amount * inverse[place, row]
            for s in range(master.counts[N_SUPERS]):
                if s != enters:
                    tableau[s, other] -= amount * tableau[s, place]
    leaves = master.basis[place]
    master.amounts[leaves] = 0.0
    master.places[leaves] = NONBASIC
    master.basis[place] = master.supers[enters]
    _remove_super(master, enters, place)
    master.counts[PIVOTS] += 1
    return True
