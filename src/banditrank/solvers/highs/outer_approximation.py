"""The best ranking by outer approximation: an integer program in which tangents stand for a concave utility.

A second opinion that shares no bound with the project's own branch and bound: HiGHS decides. As tangents lie
above a concave f, each optimum of the program is an upper bound. Tangents are added where the last optimum
lies, first without integrality and then with it, until the program promises no more than the best ranking
found (Duran and Grossmann 1986). Maximin and linear utilities need no more than one integer program.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError
from banditrank.model.rankings import Ranking
from banditrank.solvers.assignment import slope
from banditrank.solvers.highs.model import TOLERANCE, add_rows, add_variables, new_model, run_until
from banditrank.solvers.instance import Instance, total_value, values_of
from banditrank.solvers.solution import gap_unit
from banditrank.solvers.solver import Solver, SolverOptions, SolverResult
from banditrank.utilities.formulas import CUSTOM, LINEAR, LOGARITHM
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]

LP_GAP = 1e-7  # tangents are added to the linear program until they are this close to f
MAX_LP_ROUNDS = 200
MAX_RESCALINGS = 5  # how often the unit of the program may be changed
MIN_SHARE = 1e-6  # no tangents below this share of h_i: where f has a pole, slopes grow without end
MAX_SLOPE = 1e7  # nor steeper than this in the program's units, or HiGHS loses digits


class Curve(NamedTuple):
    """A utility's f and f' on arrays of values."""

    height: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


class Optimum(NamedTuple):
    """What HiGHS found."""

    bound: float  # no ranking is worth more; infinite if HiGHS was stopped before it knew one
    cells: Floats | None  # (K, M) if it found a solution
    values: Floats | None  # (N,) u
    excess: Floats | None  # (N,) by how much its tangents overrate a type's utility, in units; 0 for maximin
    nodes: int


class OuterProgram:
    """The program: ask for its optimum, add tangents, ask again.

    Parameters
    ----------
    instance
        With positive weights only.
    curve
        The utility of a type's value, finite at its largest value; nothing for maximin.
    largest
        h, shape (N,).
    unit
        What losses are measured in.
    """

    def __init__(self, instance: Instance, curve: Curve | None, largest: Floats, unit: float) -> None:
        self.unit = unit
        self._instance, self._curve, self._largest = instance, curve, largest
        self._scale = np.where(largest > 0.0, largest, 1.0)
        n_types, n_positions, n_items = instance.n_user_types, instance.n_positions, instance.n_items
        n_losses = n_types if curve else 1
        self._y = n_positions * n_items  # the number of cells, and the first variable after them
        self._w = self._y + n_types
        self._constant = float(instance.weights @ curve.height(largest) if curve else largest.min())
        self._highspy, self._model = new_model("outer-approximation")
        bonuses = np.tile(instance.bonuses, n_positions)
        add_variables(
            self._model,
            costs=np.concatenate([-bonuses / unit, np.zeros(n_types), np.full(n_losses, -1.0)]),
            lower=np.concatenate([np.zeros(self._w), np.full(n_losses, -np.inf)]),
            upper=np.concatenate([np.ones(self._w), np.zeros(n_losses)]),
        )
        self._add_assignment()
        if curve is None:  # w − h_i y_i ≤ −min h
            self._add_lines(np.arange(n_types), self._scale / unit, np.full(n_types, -largest.min() / unit))
        else:
            self._bound_at_nothing(curve)

    def optimum(self, deadline: float) -> Optimum:
        """Solve without integrality."""
        run_until(self._model, deadline)
        if self._is_infeasible():
            return Optimum(-np.inf, None, None, None, 1)
        if self._model.getModelStatus() != self._highspy.HighsModelStatus.kOptimal:
            return Optimum(np.inf, None, None, None, 1)
        return self._read(self._model.getInfo().objective_function_value, 1)

    def integer_optimum(self, deadline: float, gap: float, start: NDArray[np.intp]) -> Optimum:
        """Solve with integrality to an absolute gap, starting from a ranking."""
        every_cell = np.arange(self._y, dtype=np.int32)
        self._model.changeColsIntegrality(self._y, every_cell, np.ones(self._y, dtype=np.uint8))
        self._model.setOptionValue("mip_rel_gap", 0.0)
        self._model.setOptionValue("mip_abs_gap", gap / self.unit)
        shown = np.zeros(self._y)
        shown[np.arange(start.size) * self._instance.n_items + start] = 1.0
        self._model.setSolution(self._y, every_cell, shown)
        run_until(self._model, deadline, integer=True)
        info = self._model.getInfo()
        nodes = max(1, int(info.mip_node_count))
        if self._is_infeasible():
            return Optimum(-np.inf, None, None, None, nodes)
        known = self._highspy.HighsModelStatus
        if self._model.getModelStatus() not in (known.kOptimal, known.kTimeLimit):
            return Optimum(np.inf, None, None, None, nodes)  # HiGHS gave up: nothing it says is proved
        # HiGHS drops nodes that cannot beat its solution by the gap, and then calls its solution the bound.
        bound = info.mip_dual_bound - gap / self.unit if np.isfinite(info.mip_dual_bound) else -np.inf
        if info.primal_solution_status != self._highspy.SolutionStatus.kSolutionStatusFeasible:
            return Optimum(self._constant - self.unit * bound, None, None, None, nodes)
        return self._read(bound, nodes)

    def add_tangents(self, values: Floats, floors: Floats) -> None:
        """Add each type's tangent at its value, or at its floor if that is higher."""
        if self._curve is None:
            return
        types = np.flatnonzero(self._largest > 0.0)  # the others' utility is a constant
        points, largest = np.maximum(values, floors)[types], self._largest[types]
        weights = self._instance.weights[types] / self.unit
        slopes = weights * self._curve.slope(points) * largest  # in y
        falls = weights * (self._curve.height(points) - self._curve.height(largest))
        self._add_lines(types, slopes, falls - slopes * points / largest)

    def floors(self, loss: float) -> Floats:
        """Return the values below which tangents are of no use, shape (N,).

        A type whose utility alone falls short by more than ``loss`` makes a ranking worse than the best known
        one, and the tangent at that point suffices to say so.
        """
        if self._curve is None:
            return np.zeros_like(self._largest)
        types = self._largest > 0.0
        largest, weights = self._largest[types], self._instance.weights[types]
        low, high = np.full(largest.size, MIN_SHARE), np.ones(largest.size)
        for _ in range(30):
            middle = np.sqrt(low * high)
            falls = weights * (self._curve.height(largest) - self._curve.height(middle * largest))
            slopes = weights * self._curve.slope(middle * largest) * largest / self.unit
            useful = (falls <= loss) & (slopes <= MAX_SLOPE)
            low, high = np.where(useful, low, middle), np.where(useful, middle, high)
        floors = np.zeros_like(self._largest)
        floors[types] = high * largest
        return floors

    def _add_assignment(self) -> None:
        """Add: one item at each position, no item twice, and y_i as a sum over cells."""
        instance = self._instance
        n_types, n_positions, n_items = instance.n_user_types, instance.n_positions, instance.n_items
        cells = np.arange(self._y)
        ones, positions = np.ones(self._y), np.ones(n_positions)
        add_rows(self._model, (cells // n_items, cells, ones), positions, positions)
        add_rows(self._model, (cells % n_items, cells, ones), np.zeros(n_items), np.ones(n_items))
        gains = self._gains().reshape(n_types, -1) / self._scale[:, None]
        types, shown = np.nonzero(gains)
        rows = np.concatenate([types, np.arange(n_types)])
        variables = np.concatenate([shown, self._y + np.arange(n_types)])
        entries = np.concatenate([gains[types, shown], np.full(n_types, -1.0)])
        add_rows(self._model, (rows, variables, entries), np.zeros(n_types), np.zeros(n_types))

    def _bound_at_nothing(self, curve: Curve) -> None:
        """Add what tangents cannot say of types that may get nothing, where f can be infinitely steep.

        If f(0) = −∞, each type gets something. If not, the line through f(0) and f(m), m being the least that
        a type can get beside nothing, lies nowhere below f at values that rankings give.
        """
        gains = self._gains().reshape(self._instance.n_user_types, -1)
        types = np.flatnonzero((gains == 0.0).any(axis=1) & (self._largest > 0.0))
        if not types.size:
            return
        at_zero = curve.height(np.zeros(types.size))
        if at_zero[0] == -np.inf:
            rows, cells = np.nonzero(gains[types])
            least, most = np.ones(types.size), np.full(types.size, np.inf)
            add_rows(self._model, (rows, cells, np.ones(rows.size)), least, most)
            return
        least = np.where(gains[types] > 0.0, gains[types], np.inf).min(axis=1)
        weights, largest = self._instance.weights[types] / self.unit, self._largest[types]
        slopes = weights * (curve.height(least) - at_zero) / least * largest
        usable = slopes <= MAX_SLOPE
        falls = weights * (at_zero - curve.height(largest))
        self._add_lines(types[usable], slopes[usable], falls[usable])

    def _gains(self) -> Floats:
        """Return ρ_ik μ_ij, shape (N, K, M)."""
        return np.asarray(self._instance.preferences[:, :, None] * self._instance.means[:, None, :])

    def _add_lines(self, types: NDArray[np.intp], slopes: Floats, heights: Floats) -> None:
        """Add w_i ≤ height + slope · y_i."""
        losses = self._w + types if self._curve else np.full(types.size, self._w)
        rows = np.tile(np.arange(types.size), 2)
        variables = np.concatenate([losses, self._y + types])
        entries = np.concatenate([np.ones(types.size), -slopes])
        add_rows(self._model, (rows, variables, entries), np.full(types.size, -np.inf), heights)

    def _is_infeasible(self) -> bool:
        """Tell whether a type gets nothing in every ranking: nothing else can fail, nor be unbounded."""
        known = self._highspy.HighsModelStatus
        return self._model.getModelStatus() in (known.kInfeasible, known.kUnboundedOrInfeasible)

    def _read(self, bound: float, nodes: int) -> Optimum:
        solution = np.array(self._model.getSolution().col_value)
        values = np.clip(solution[self._y : self._w], 0.0, 1.0) * self._scale
        excess = np.zeros_like(values)
        if self._curve is not None:
            fall = self._curve.height(values) - self._curve.height(self._largest)
            excess = solution[self._w :] - self._instance.weights * fall / self.unit
        cells = solution[: self._y].reshape(self._instance.n_positions, self._instance.n_items)
        return Optimum(self._constant - self.unit * bound, cells, values, excess, nodes)


def curve_of(utility: Utility) -> Curve | None:
    """Return the formulas of a linear or concave utility; nothing for maximin.

    Examples
    --------
    >>> from banditrank.utilities.utility import NASH
    >>> curve_of(NASH).slope(np.array([0.5, 1.0]))
    array([2., 1.])
    """
    if utility.shape == "maximin":
        return None
    if utility.code == LINEAR:
        return Curve(lambda u: u, np.ones_like)
    if utility.code == LOGARITHM:
        return Curve(np.log, np.reciprocal)
    if utility.code != CUSTOM:
        alpha = utility.parameter
        return Curve(lambda u: u ** (1.0 - alpha) / (1.0 - alpha), lambda u: u**-alpha)
    if utility.shape == "linear":
        steepness = slope(utility)
        return Curve(utility.evaluate, lambda u: np.full_like(u, steepness))

    def derivative(values: Floats) -> Floats:
        slopes = [utility.derivative(float(u)) for u in values] if utility.derivative else []
        for bad in (s for s in slopes if not np.isfinite(s)):
            raise InvalidInputError("utility derivative", "must be finite at positive values", bad)
        return np.array(slopes, dtype=np.float64)

    return Curve(utility.evaluate, derivative)


def _unsupported_reason(utility: Utility, _items: int, _positions: int) -> str | None:
    if utility.shape == "non-concave":
        return f"needs a linear or concave utility or maximin, got {utility} ({utility.shape})"
    if utility.shape == "concave" and utility.code == CUSTOM and utility.derivative is None:
        return f"needs the derivative of a concave function, got {utility} without one"
    return None


def _run(instance: Instance, utility: Utility, options: SolverOptions) -> SolverResult:
    counts = instance.weights > 0.0  # the others would add 0 · −∞
    weighted = Instance(
        instance.weights[counts], instance.preferences[counts], instance.means[counts], instance.bonuses
    )
    with np.errstate(divide="ignore", over="ignore"):  # −∞ at 0 is meant
        return _Search(weighted, utility, options).run()


class _Search:
    """The best ranking and the best bound so far."""

    def __init__(self, instance: Instance, utility: Utility, options: SolverOptions) -> None:
        self._instance, self._utility, self._options = instance, utility, options
        self._curve = curve_of(utility)
        attention = -np.sort(-instance.preferences, axis=1)
        best_means = -np.sort(-instance.means, axis=1)[:, : instance.n_positions]
        self._largest = (attention * best_means).sum(axis=1)  # (N,) what each type could get on its own
        if self._curve is None:
            alone = self._largest.min(initial=np.inf)
        else:
            alone = instance.weights @ self._curve.height(self._largest)
        self._top = float(alone + np.sort(instance.bonuses)[-instance.n_positions :].sum())
        # HiGHS takes a constraint for met that is missed by its tolerance, and so does not prove its bounds
        # to the last digit: each of the K shown cells and of the 2 N other variables may add as much.
        self._error = max(1e-9, (instance.n_positions + 2 * instance.n_user_types) * TOLERANCE)
        self._bound, self._nodes = self._safe(self._top, 0.0), 0
        self._ranking, self._value = np.arange(instance.n_positions), -np.inf
        self._offer(self._ranking if options.warm_start is None else options.warm_start)

    def run(self) -> SolverResult:
        """Return the best ranking and bound that the limits allow."""
        if not np.isfinite(self._bound):  # a type that cannot get anything, or no types at all
            return SolverResult(self._ranking, self._bound, 0)
        self._offer(_round(self._scores()))
        for _ in range(MAX_RESCALINGS):
            program = self._relaxed_phase()
            self._integer_phase(program)
            if self._is_done() or 0.25 <= program.unit / self._unit() <= 4.0:
                break
            # The program's unit was taken from a far worse ranking than was found: measure again in its own.
        return SolverResult(self._ranking, self._bound, self._nodes)

    def _relaxed_phase(self) -> OuterProgram:
        """Add tangents where the linear program's optimum lies, until they are close to f there."""
        program = OuterProgram(self._instance, self._curve, self._largest, self._unit())
        program.add_tangents(self._largest, self._largest)
        if self._value > -np.inf:
            program.add_tangents(np.zeros_like(self._largest), self._floors(program))
        for _ in range(MAX_LP_ROUNDS):
            if self._is_done():
                break
            optimum = self._take(program.optimum(self._options.deadline), program)
            if optimum.cells is None or optimum.values is None or optimum.excess is None:
                break
            self._offer(_round(optimum.cells))
            floors = self._floors(program)
            can_improve = (optimum.excess > LP_GAP / optimum.excess.size) & (optimum.values > floors)
            if not can_improve.any():
                break
            program.add_tangents(optimum.values, floors)
        return program

    def _integer_phase(self, program: OuterProgram) -> None:
        """Add tangents where the integer program's optimum lies, until it promises no more than was found."""
        seen: set[bytes] = set()
        while not self._is_done():
            gap = 0.1 * min(self._options.target_gap, 1e-9) * self._unit()
            optimum = program.integer_optimum(self._options.deadline, gap, self._ranking)
            self._take(optimum, program)
            if optimum.cells is None:
                return
            ranking = _round(optimum.cells)
            if ranking.tobytes() in seen:  # its tangents are there already: what remains is rounding
                return
            seen.add(ranking.tobytes())
            self._offer(ranking)
            values = np.zeros(self._instance.n_user_types)
            values_of(self._instance, ranking.astype(np.uintp), values)
            program.add_tangents(values, self._floors(program))

    def _take(self, optimum: Optimum, program: OuterProgram) -> Optimum:
        self._bound = min(self._bound, self._safe(optimum.bound, program.unit))
        self._nodes += optimum.nodes
        return optimum

    def _safe(self, bound: float, unit: float) -> float:
        """Return a bound that holds in spite of rounding."""
        return bound + self._error * max(1.0, abs(bound), unit) if np.isfinite(bound) else bound

    def _offer(self, ranking: Ranking) -> None:
        """Keep a ranking if it is the best so far."""
        value = total_value(self._instance, self._utility.compiled(), ranking)
        self._utility.raise_callback_error()
        if value > self._value:
            self._ranking, self._value = ranking, value

    def _is_done(self) -> bool:
        """Tell whether the ranking is as good as was asked for, or time is up."""
        if not self._bound > self._value or time.perf_counter() >= self._options.deadline:
            return True
        if self._value == -np.inf:
            return False
        close_enough = self._options.target_gap * gap_unit(self._utility.compiled(), self._value)
        return self._bound - self._value <= max(close_enough, 2.0 * self._error * max(1.0, abs(self._value)))

    def _unit(self) -> float:
        """Return what gaps are shares of."""
        compiled = self._utility.compiled()
        largest = max(gap_unit(compiled, self._top), 1e-6)
        return largest if self._value == -np.inf else max(gap_unit(compiled, self._value), 1e-6 * largest)

    def _floors(self, program: OuterProgram) -> Floats:
        return program.floors(self._top - self._value)

    def _scores(self) -> Floats:
        """Return what each cell would add, shape (K, M), if f were straight."""
        slopes = np.ones_like(self._largest)
        if self._curve is not None:
            slopes = self._curve.slope(np.where(self._largest > 0.0, self._largest, 1.0))
        weighted = (self._instance.weights * slopes)[:, None] * self._instance.preferences  # (N, K)
        return np.asarray(weighted.T @ self._instance.means + self._instance.bonuses)


def _round(cells: Floats) -> Ranking:
    """Return a ranking by taking the largest cell whose position and item are both free, again and again."""
    left = cells.copy()
    ranking = np.zeros(cells.shape[0], dtype=np.intp)
    for _ in range(cells.shape[0]):
        position, item = np.unravel_index(left.argmax(), left.shape)
        ranking[position] = item
        left[position, :] = -np.inf
        left[:, item] = -np.inf
    return ranking


SOLVER = Solver(_unsupported_reason, _run)
