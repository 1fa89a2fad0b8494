"""The best lottery over rankings, by column generation: compiled, warm-started, without allocation.

The columns of the master (master.py) are rankings; its rows say that probabilities sum to 1, that no type
has less than the minimum (maximin), and that guarantees hold. Pricing (pricing.py) finds the ranking that
improves the mixture most at its slopes and duals, and proves an upper bound on every lottery. The search ends
when the bound is within the gap of the mixture's value.

Pricing is at a mean of the master's point and the point of the best bound, because duals of a master with few
columns vary much (Wentges smoothing); if that finds nothing new, at the master's own.

Functions take the address of the state: passing its hundreds of numbers took a fifth of a round.

Guarantees have a common factor θ ≤ 1, whose large profit is the penalty: the mixture keeps as large a share
of all guarantees as there is, and θ = 1 if they can be kept.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.solvers._instance import Instance, bonus_of, copy_instance
from banditrank.solvers._lottery.master import (
    N_COLUMNS,
    N_SUPERS,
    NONBASIC,
    PIVOTS,
    SUPERBASIC,
    Master,
    MasterObjective,
    factorise,
    height_of,
    improve_master,
    mix,
    new_master,
)
from banditrank.solvers._lottery.pricing import (
    GuaranteeRows,
    Pricing,
    load_pricing,
    new_pricing,
    price_items,
    price_rankings,
    write_best_ranking,
)
from banditrank.solvers._solution import gap_unit
from banditrank.solvers._tangents import ROUNDING, Tangent, bound_at, lowest_point, take_tangent
from banditrank.utilities._formulas import MINIMUM, CompiledUtility

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Indices of LotteryHandle.numbers. Before a call: the relative gap at which to stop, the utility of types
# whose value is always 0, and the penalty relative to the value's scale. After it: value, upper bound, θ.
GAP, CONSTANT, PENALTY, VALUE, BOUND, FACTOR = range(6)
# Indices of LotteryHandle.counts: rankings of the lottery; assignments of the last call; 1 if the columns of
# the last call may be used; 1 for objectives without bonuses and guarantees; the goal of the last call.
N_RANKINGS, ASSIGNMENTS, IS_WARM, IS_PLAIN, GOAL = range(5)
# Indices of Generation.sizes: rows of probabilities that sum to 1; rows for the minimum over types; columns
# that are not rankings: surpluses of rows, the minimum, θ and its slack.
N_CONVEX, N_MINIMA, N_SPECIAL = range(3)

OPTIMISE, MAXIMISE_FACTOR = range(2)  # goals of a call
EVERYONE: Any = np.int64(0)  # owner of rankings under equal treatment; a literal would be compiled apart

_SMOOTHING = 0.5  # weight of the point of the best bound
_COVERED = 0.05  # share of its personalized value below which a start has the type's own ranking, too
_NEGATIVE = -1e-9  # an amount below which a basis of the last call is infeasible
_MIN_PROBABILITY = 1e-12
_PERTURBATION = 1e-6  # of guarantees, relative to their levels
_MAX_STUCK = 8  # refinements of the master's weights without a new column


class Generation(NamedTuple):
    """The workspace of successive searches."""

    instance: Instance
    objective: MasterObjective
    is_personalized: bool
    guarantees: GuaranteeRows
    master: Master
    pricing: Pricing
    rankings: NDArray[np.uintp]  # (columns, K) of the columns that are rankings
    owners: Integers  # (columns,) the type that a ranking is for; 0 if for all
    points: Floats  # (N,) the tangent point of pricing
    best_points: Floats  # (N,) that of the best bound
    prices: Floats  # (types of maximin + guarantees,) y at which to price
    best_prices: Floats  # those of the best bound
    numbers: Floats  # (6,)
    counts: Integers  # (5,)
    sizes: Integers  # (3,)
    support: Integers  # (S,) columns of the lottery
    probabilities: Floats  # (S,)


class LotteryHandle(NamedTuple):
    """A lottery solver called by address, by Python and by the formulas of policies.

    In a loop, call `improve_lottery`. Otherwise write an instance to ``instance`` and
    the gap to ``numbers[GAP]``, and call `search_lottery`.

    The lottery is in the first ``counts[N_RANKINGS]`` entries of ``support`` and ``probabilities``: ranking
    ``rankings[support[s]]`` is shown with probability ``probabilities[s]``, under personalized treatment to
    type ``owners[support[s]]`` (0 under equal treatment). ``numbers[VALUE]`` is its value, ``numbers[BOUND]``
    an upper bound on every lottery, and ``numbers[FACTOR]`` the share of the guarantees that it keeps: 1
    unless they cannot be kept. ``values`` are the expected values of the types. The next call starts from the
    columns and weights of the last one; set ``counts[IS_WARM]`` to 0 to start anew.
    """

    memory: NDArray[np.uint64]  # the `Generation`
    function: int
    instance: Instance
    guarantees: GuaranteeRows
    rankings: NDArray[np.uintp]  # (columns, K)
    owners: Integers  # (columns,)
    support: Integers  # (S,)
    probabilities: Floats  # (S,)
    values: Floats  # (N,) expected value of each type
    prices: Floats  # (types of maximin + guarantees,) duals
    numbers: Floats  # (6,)
    counts: Integers  # (5,)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lottery solver cannot be copied: it contains addresses")


def no_guarantees(n_items: int) -> GuaranteeRows:
    """Return no guarantees."""
    nothing = np.zeros(0, dtype=np.int64)
    return GuaranteeRows(
        np.zeros(0), np.zeros(n_items + 1, dtype=np.int64), nothing, nothing.copy(), np.zeros(0)
    )


def bind_lottery(
    n_user_types: int,
    n_items: int,
    n_positions: int,
    utility: CompiledUtility,
    *,
    guarantees: GuaranteeRows | None = None,
    is_personalized: bool = False,
    capacity: int | None = None,
) -> LotteryHandle:
    """Allocate a lottery solver for the given sizes.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        N, M and K.
    utility
        A linear or concave utility with a derivative, or maximin.
    guarantees
        Rows of guarantees; none by default.
    is_personalized
        Whether each type has a lottery of its own.
    capacity
        Number of rankings to keep; enough for one search by default. A loop needs few: twice the minimum.
    """
    n, m, k = n_user_types, n_items, n_positions
    rows = no_guarantees(m) if guarantees is None else guarantees
    n_convex = n if is_personalized else 1
    n_minima = n if utility.code == MINIMUM else 0
    n_priced = n_minima + rows.levels.size
    n_rows = n_convex + n_priced + (1 if rows.levels.size else 0)
    n_special = n_priced + (1 if n_minima else 0) + (2 if rows.levels.size else 0)
    least = 2 * (n_rows + n) + 8
    n_columns = n_special + (max(least, 6 * (n_rows + n) + 200) if capacity is None else max(least, capacity))
    generation = Generation(
        Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m)),
        MasterObjective(utility, np.zeros(n), np.zeros(n)),
        is_personalized,
        rows,
        new_master(n, n_rows, n_columns),
        new_pricing(n, m, k, is_personalized=is_personalized),
        np.zeros((n_columns, k), dtype=np.uintp),
        np.zeros(n_columns, dtype=np.int64),
        *(np.zeros(n), np.zeros(n), np.zeros(n_priced), np.zeros(n_priced), np.zeros(6)),
        np.zeros(5, dtype=np.int64),
        np.array([n_convex, n_minima, n_special]),
        np.zeros(n_rows + n + 2, dtype=np.int64),
        np.zeros(n_rows + n + 2),
    )
    generation.numbers[PENALTY] = 1e3
    native = NativeArguments(generation)
    return LotteryHandle(
        *(native.memory, native.native_function(generate_columns), generation.instance, rows),
        *(generation.rankings, generation.owners, generation.support, generation.probabilities),
        *(generation.master.mixture, generation.prices, generation.numbers, generation.counts),
    )


@inlined
def search_lottery(handle: LotteryHandle, max_assignments: int, goal: int) -> None:
    """Search for a lottery within the gap, with a limit on assignments, from the columns of the last call.

    The goal is OPTIMISE, or MAXIMISE_FACTOR for the largest common factor of the guarantees.
    """
    call_native(handle.function, handle.memory.ctypes.data, max_assignments, goal)


@inlined
def improve_lottery(handle: LotteryHandle, instance: Instance, gap: float, max_assignments: int) -> None:
    """Search for the lottery of an instance that changes little from call to call.

    Parameters
    ----------
    handle
        The solver, from `bind_lottery`.
    instance
        λ, ρ, μ and bonuses, copied into the solver.
    gap
        Relative gap at which to stop.
    max_assignments
        Assignments after which to return the best lottery so far.
    """
    copy_instance(instance, handle.instance)
    handle.numbers[GAP] = gap
    search_lottery(handle, max_assignments, OPTIMISE)


def generate_columns(pointer: Any, max_assignments: int, goal: int) -> None:
    """Search for a lottery: the native function of `search_lottery`."""
    state = load_arguments(pointer)[0]
    master, numbers = state.master, state.numbers
    state.counts[GOAL] = goal
    _load(pointer)
    if not _start_warm(pointer):
        _start_cold(pointer)
    state.counts[ASSIGNMENTS] = 0
    bound, is_pure, stuck = np.inf, True, 0
    scale = _value_scale(pointer)
    tolerance = 1e-3 * scale
    while True:
        is_solved = improve_master(state.objective, master, tolerance)
        value = _value(pointer)
        unit = (
            gap_unit(state.objective.utility, value + numbers[CONSTANT])
            if state.counts[GOAL] == OPTIMISE
            else 1.0
        )
        target = numbers[GAP] * unit
        is_whole = state.counts[GOAL] == OPTIMISE and _factor(pointer) >= 1.0 - 1e-12
        if is_whole and bound - value <= target:
            break
        if state.counts[GOAL] == MAXIMISE_FACTOR and (value >= 1.0 or bound - value <= target):
            break
        if state.counts[ASSIGNMENTS] >= max_assignments:
            break
        _move_points(pointer, 0.0 if is_pure or bound == np.inf else _SMOOTHING)
        reached = _price(pointer)
        state.counts[ASSIGNMENTS] += 1
        if reached < bound:
            bound = reached
            _keep_points(pointer)
        if is_whole and bound - value <= target:
            break
        if _add_columns(pointer):
            is_pure = False
        elif not is_pure:
            is_pure = True
        else:  # the master has every column that it needs: its weights are not exact yet
            stuck += 1
            if stuck > _MAX_STUCK or not is_solved or tolerance < 0.01 * target:
                break
            tolerance *= 0.01
            continue
        slack = bound - value if bound < np.inf else scale
        if not is_whole:  # the penalty of what is missing of θ is slack, too
            slack = max(slack, 0.0) + numbers[PENALTY] * scale * (1.0 - _factor(pointer))
        tolerance = 0.05 * max(slack, target)
    if state.counts[GOAL] == OPTIMISE and not is_whole:
        bound += _relief(pointer)
    numbers[VALUE], numbers[BOUND], numbers[FACTOR] = value, bound, _factor(pointer)
    _read_lottery(pointer)


@internal
def _load(pointer: Any) -> None:
    """Compute all that depends on the instance: objective, special columns, and the columns of rankings."""
    state: Generation = load_arguments(pointer)[0]
    instance, objective, master, levels = (
        state.instance,
        state.objective,
        state.master,
        state.guarantees.levels,
    )
    load_pricing(instance, state.guarantees, state.pricing)
    is_plain = levels.size == 0
    for j in range(instance.bonuses.size):
        is_plain &= instance.bonuses[j] == 0.0
    state.counts[IS_PLAIN] = 1 if is_plain else 0
    for i in range(objective.weights.size):
        appeal, looks = 0.0, 0.0
        for j in range(instance.means.shape[1]):
            appeal = max(appeal, instance.means[i, j])
        for k in range(instance.preferences.shape[1]):
            looks += instance.preferences[i, k]
        counts = instance.weights[i] > 0.0 and looks * appeal > 0.0 and state.counts[GOAL] == OPTIMISE
        objective.weights[i] = instance.weights[i] if counts else 0.0
        objective.floors[i] = lowest_point(objective.utility, looks, appeal) if counts else 1.0
    first, n_types, n_guarantees = state.sizes[N_CONVEX], state.sizes[N_MINIMA], levels.size
    last = master.right.size - 1
    for row in range(master.right.size):
        master.right[row] = 1.0 if row < first or (row == last and n_guarantees > 0) else 0.0
    n_special = state.sizes[N_SPECIAL]
    for c in range(n_special):
        master.profits[c] = 0.0
        for i in range(objective.weights.size):
            master.values[i, c] = 0.0
        for row in range(master.right.size):
            master.rows[row, c] = 0.0
    for c in range(n_types + n_guarantees):
        master.rows[first + c, c] = -1.0
    if n_types > 0:
        minimum = n_types + n_guarantees
        for i in range(n_types):
            master.rows[first + i, minimum] = -1.0
        master.profits[minimum] = 1.0 if state.counts[GOAL] == OPTIMISE else 0.0
    if n_guarantees > 0:
        for c in range(n_guarantees):
            missing = _perturbation(levels[c], c)
            master.right[first + n_types + c] = -missing
            master.rows[first + n_types + c, n_special - 2] = -levels[c] - missing
        master.rows[last, n_special - 2] = 1.0
        master.rows[last, n_special - 1] = 1.0
        is_factor = state.counts[GOAL] == MAXIMISE_FACTOR
        master.profits[n_special - 2] = 1.0 if is_factor else state.numbers[PENALTY] * _value_scale(pointer)
    if state.counts[IS_WARM] == 0:
        master.counts[N_COLUMNS] = n_special
    for c in range(n_special, master.counts[N_COLUMNS]):
        _write_column(pointer, c)


@inlined
def _perturbation(level: float, c: int) -> float:
    """Return by how much guarantee c is relaxed at θ = 0; at θ = 1 it is not.

    Otherwise all guarantees of items that are not shown would be tight at the start, and most steps of the
    simplex method would have length 0.
    """
    return _PERTURBATION * level * (1.0 + 0.618033988749895 * (c + 1) % 1.0)


@internal
def _value_scale(pointer: Any) -> float:
    """Return the scale of values: Σ_i w_i f'(u_i) u_i at the personalized values, or the largest of these."""
    state: Generation = load_arguments(pointer)[0]
    total, largest = 0.0, 0.0
    for i in range(state.objective.weights.size):
        largest = max(largest, state.pricing.bests[i])
        state.points[i] = max(state.pricing.bests[i], state.objective.floors[i])
    if state.objective.utility.code == MINIMUM:
        return largest
    tangent = take_tangent(
        state.objective.utility, state.objective.weights, state.points, 0, state.pricing.slopes
    )
    total = tangent.lift
    for j in range(state.instance.bonuses.size):
        total = max(total, state.instance.bonuses[j])
    return total if total > 0.0 else 1.0


@internal
def _write_column(pointer: Any, column: int) -> None:
    """Compute a ranking's values, and its coefficients in the rows."""
    state: Generation = load_arguments(pointer)[0]
    instance, master, owner = state.instance, state.master, state.owners[column]
    ranking = state.rankings[column]
    first, n_types = state.sizes[N_CONVEX], state.sizes[N_MINIMA]
    for row in range(master.right.size):
        master.rows[row, column] = 0.0
    master.rows[owner, column] = 1.0
    for i in range(instance.weights.size):
        value = 0.0
        if not state.is_personalized or i == owner:
            for k in range(ranking.size):
                value += instance.preferences[i, k] * instance.means[i, ranking[k]]
        master.values[i, column] = value
        if n_types > 0:  # a type without weight has no part in the minimum
            master.rows[first + i, column] = value if instance.weights[i] > 0.0 else 1e6 * _largest(pointer)
    has_bonuses = state.counts[GOAL] == OPTIMISE and not state.is_personalized
    master.profits[column] = bonus_of(instance, ranking) if has_bonuses else 0.0
    rows = state.guarantees
    if rows.levels.size > 0:
        start = first + n_types
        for k in range(ranking.size):
            item = ranking[k]
            looks = state.pricing.looks[k]
            if state.is_personalized:
                looks = instance.weights[owner] * instance.preferences[owner, k]
            for entry in range(rows.item_starts[item], rows.item_starts[item + 1]):
                master.rows[start + rows.item_rows[entry], column] += looks
        start += rows.levels.size - rows.user_types.size
        for c in range(rows.user_types.size):
            master.rows[start + c, column] = master.values[rows.user_types[c], column]


@inlined
def _largest(pointer: Any) -> float:
    state: Generation = load_arguments(pointer)[0]
    largest = 1e-300
    for i in range(state.pricing.bests.size):
        largest = max(largest, state.pricing.bests[i])
    return largest


@internal
def _start_warm(pointer: Any) -> bool:
    """Start from the basis of the last call; return False if there is none, or it is not feasible."""
    state: Generation = load_arguments(pointer)[0]
    master = state.master
    if state.counts[IS_WARM] == 0 or not factorise(master):
        return False
    for place in range(master.basis.size):
        amount = master.amounts[master.basis[place]]
        if not amount >= _NEGATIVE:
            return False
        master.amounts[master.basis[place]] = max(amount, 0.0)
    return True


@internal
def _start_cold(pointer: Any) -> None:
    """Start from one ranking, or one of each type; add those of types that it gives almost nothing."""
    state: Generation = load_arguments(pointer)[0]
    master, pricing, instance = state.master, state.pricing, state.instance
    n, first, n_types = instance.weights.size, state.sizes[N_CONVEX], state.sizes[N_MINIMA]
    n_guarantees, n_special = state.guarantees.levels.size, state.sizes[N_SPECIAL]
    for c in range(master.places.size):
        master.places[c] = NONBASIC
        master.amounts[c] = 0.0
    master.counts[N_SUPERS], master.counts[PIVOTS] = 0, 0
    if state.is_personalized:
        for i in range(n):
            write_best_ranking(instance, pricing, i, pricing.rankings[i])
    else:
        for j in range(pricing.item_prices.size):
            pricing.item_prices[j] = 0.0
        for i in range(n):
            if state.objective.utility.code == MINIMUM:
                pricing.slopes[i] = 1.0 if instance.weights[i] > 0.0 else 0.0
            else:
                state.points[i] = max(0.7 * pricing.bests[i], state.objective.floors[i])
        if state.objective.utility.code != MINIMUM:
            take_tangent(state.objective.utility, state.objective.weights, state.points, 0, pricing.slopes)
        price_rankings(
            instance,
            state.guarantees,
            pricing,
            int(state.is_personalized),
            int(state.counts[GOAL] == OPTIMISE),
        )
    for owner in range(first):
        master.basis[owner] = _find_or_add(pointer, pricing.rankings[owner], owner)
        master.places[master.basis[owner]] = owner
    if n_types > 0:
        worst = 0
        for i in range(n_types):
            master.basis[first + i] = i
            column = master.basis[i if state.is_personalized else 0]
            other = master.basis[worst if state.is_personalized else 0]
            if master.rows[first + i, column] < master.rows[first + worst, other]:
                worst = i
        master.basis[first + worst] = n_types + n_guarantees
    for c in range(n_guarantees):
        master.basis[first + n_types + c] = n_types + c
    if n_guarantees > 0:
        master.basis[master.basis.size - 1] = n_special - 1
    for place in range(first, master.basis.size):
        master.places[master.basis[place]] = place
    if not state.is_personalized and state.objective.utility.code != MINIMUM:
        _cover_types(pointer)
    factorise(master)


@internal
def _cover_types(pointer: Any) -> None:
    """Give weight to the rankings of types whose value at the start is near 0: f may have a pole there."""
    state: Generation = load_arguments(pointer)[0]
    master, pricing = state.master, state.pricing
    start = master.basis[0]
    for i in range(state.objective.weights.size):
        if state.objective.weights[i] > 0.0 and master.values[i, start] < _COVERED * pricing.bests[i]:
            write_best_ranking(state.instance, pricing, i, pricing.rankings[0])
            column = _find_or_add(pointer, pricing.rankings[0], EVERYONE)
            if master.places[column] == NONBASIC:
                master.supers[master.counts[N_SUPERS]] = column
                master.places[column] = SUPERBASIC
                master.counts[N_SUPERS] += 1
    for s in range(master.counts[N_SUPERS]):
        master.amounts[master.supers[s]] = 1.0 / (1.0 + master.counts[N_SUPERS])


@internal
def _find_or_add(pointer: Any, ranking: NDArray[np.uintp], owner: int) -> int:
    """Return the column of a ranking; a new one replaces the worst nonbasic column if there is no room."""
    state: Generation = load_arguments(pointer)[0]
    master, n_special = state.master, state.sizes[N_SPECIAL]
    count = master.counts[N_COLUMNS]
    for c in range(n_special, count):
        is_same = state.owners[c] == owner
        for k in range(ranking.size):
            if not is_same:
                break
            is_same = state.rankings[c, k] == ranking[k]
        if is_same:
            return c
    place = count
    if count == master.places.size:
        place = -1
        for c in range(n_special, count):
            is_free = master.places[c] == NONBASIC
            if is_free and (place < 0 or master.reduced[c] < master.reduced[place]):
                place = c
    else:
        master.counts[N_COLUMNS] = count + 1
    for k in range(ranking.size):
        state.rankings[place, k] = ranking[k]
    state.owners[place] = owner
    master.places[place] = NONBASIC
    master.amounts[place] = 0.0
    master.reduced[place] = 0.0
    _write_column(pointer, place)
    return int(place)


@internal
def _add_columns(pointer: Any) -> bool:
    """Add the rankings of the last pricing; return whether one of them is new."""
    state: Generation = load_arguments(pointer)[0]
    is_new = False
    for owner in range(state.sizes[N_CONVEX]):
        before = state.master.counts[N_COLUMNS]
        column = _find_or_add(pointer, state.pricing.rankings[owner], owner)
        is_full = before == state.master.places.size
        is_new |= column == before or (is_full and state.master.reduced[column] == 0.0)
    return is_new


@inlined
def _factor(pointer: Any) -> float:
    """Return θ; 1 without guarantees."""
    state: Generation = load_arguments(pointer)[0]
    if state.guarantees.levels.size == 0:
        return 1.0
    return float(state.master.amounts[state.sizes[N_SPECIAL] - 2])


@internal
def _relief(pointer: Any) -> float:
    """Return by how much the best bound rises if all levels are multiplied by θ, which the mixture keeps."""
    state: Generation = load_arguments(pointer)[0]
    paid, n_types = 0.0, state.sizes[N_MINIMA]
    for c in range(state.guarantees.levels.size):
        paid += state.best_prices[n_types + c] * state.guarantees.levels[c]
    return max(0.0, 1.0 - _factor(pointer)) * paid


@internal
def _value(pointer: Any) -> float:
    """Return the value of the mixture, without the penalty; θ if that is to be maximised."""
    state: Generation = load_arguments(pointer)[0]
    if state.counts[GOAL] == MAXIMISE_FACTOR:
        return _factor(pointer)
    master = state.master
    mix(master)
    total = height_of(state.objective, master.mixture)
    skipped = state.sizes[N_SPECIAL] - 2 if state.guarantees.levels.size > 0 else -1
    for c in range(master.counts[N_COLUMNS]):
        if master.amounts[c] > 0.0 and c != skipped:
            total += master.amounts[c] * master.profits[c]
    return total


@internal
def _move_points(pointer: Any, smoothing: float) -> None:
    """Move the point of pricing to the master's, or to a mean of it and the point of the best bound."""
    state: Generation = load_arguments(pointer)[0]
    master, first = state.master, state.sizes[N_CONVEX]
    for i in range(state.points.size):
        point = (1.0 - smoothing) * master.mixture[i] + smoothing * state.best_points[i]
        state.points[i] = max(point, state.objective.floors[i])
    for c in range(state.prices.size):
        price = max(0.0, -master.duals[first + c])
        state.prices[c] = (1.0 - smoothing) * price + smoothing * state.best_prices[c]


@internal
def _keep_points(pointer: Any) -> None:
    state: Generation = load_arguments(pointer)[0]
    for i in range(state.points.size):
        state.best_points[i] = state.points[i]
    for c in range(state.prices.size):
        state.best_prices[c] = state.prices[c]


@internal
def _price(pointer: Any) -> float:
    """Price rankings at the current point; return the upper bound that they prove."""
    state: Generation = load_arguments(pointer)[0]
    pricing, objective, rows = state.pricing, state.objective, state.guarantees
    n, n_types, n_guarantees = objective.weights.size, state.sizes[N_MINIMA], rows.levels.size
    tangent = Tangent(0.0, 0.0, False)
    if n_types > 0 or state.counts[GOAL] == MAXIMISE_FACTOR:
        mass = 0.0
        for i in range(n_types):
            pricing.slopes[i] = state.prices[i] if state.instance.weights[i] > 0.0 else 0.0
            mass += pricing.slopes[i]
        for i in range(n):
            if state.counts[GOAL] == MAXIMISE_FACTOR:
                pricing.slopes[i] = 0.0
            else:
                pricing.slopes[i] /= mass
    else:
        tangent = take_tangent(
            objective.utility, objective.weights, state.points, state.counts[IS_PLAIN], pricing.slopes
        )
    paid, missing = 0.0, 0.0
    if n_guarantees > 0:
        prices = state.prices[n_types:]
        for c in range(n_guarantees):
            paid += prices[c] * rows.levels[c]
            missing += prices[c] * _perturbation(rows.levels[c], c)
        price_items(rows, prices, pricing)
        start = n_guarantees - rows.user_types.size
        for c in range(rows.user_types.size):
            pricing.slopes[rows.user_types[c]] += prices[start + c]
    total = price_rankings(
        state.instance, rows, pricing, int(state.is_personalized), int(state.counts[GOAL] == OPTIMISE)
    )
    if state.counts[GOAL] == MAXIMISE_FACTOR:
        return (total + missing) / (paid + missing) * (1.0 + 4.0 * (n_guarantees + 8) * ROUNDING)
    total = total - paid + (n_guarantees + 8) * ROUNDING * paid
    return bound_at(objective.utility, tangent, total, n + n_guarantees)


@internal
def _read_lottery(pointer: Any) -> None:
    """Write the rankings with a positive probability, and the prices of the master."""
    state: Generation = load_arguments(pointer)[0]
    master, n_special = state.master, state.sizes[N_SPECIAL]
    count = 0
    for c in range(n_special, master.counts[N_COLUMNS]):
        if master.amounts[c] > _MIN_PROBABILITY and count < state.support.size:
            state.support[count] = c
            state.probabilities[count] = master.amounts[c]
            count += 1
    for owner in range(state.sizes[N_CONVEX]):
        total = 0.0
        for s in range(count):
            if state.owners[state.support[s]] == owner:
                total += state.probabilities[s]
        for s in range(count):
            if state.owners[state.support[s]] == owner:
                state.probabilities[s] /= total
    state.counts[N_RANKINGS] = count
    state.counts[IS_WARM] = 1
    _move_points(pointer, 0.0)
