"""Outer approximation: an integer program in which tangents replace a concave utility.

Shares no bound with this package's branch and bound, so the two check each other. Tangents lie above a
concave f, so each optimum of the program is an upper bound. Tangents are added at the last optimum, first of
the linear relaxation and then of the integer program, until the upper bound is the value of the best ranking
found (Duran and Grossmann 1986). Maximin and linear utilities need one integer program.

Variables: cells x_kj are 1 if item j is at position k; y_i = u_i / h_i is a type's value relative to h_i, its
value under its own best ranking; w_i ≤ 0 is the loss of its utility, λ_i (f(u_i) − f(h_i)). For maximin there
is one w ≤ 0, the loss of the minimum against the smallest h_i. Losses are in units of the gap, because the
tolerances of HiGHS are absolute.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError
from banditrank.model._rankings import Ranking
from banditrank.solvers._assignment import best_assignment, slope
from banditrank.solvers._highs.model import TOLERANCE, add_rows, add_variables, new_model, run_until
from banditrank.solvers._instance import Instance, total_value, values_of
from banditrank.solvers._solution import gap_unit
from banditrank.solvers._solver import Solver, SolverOptions, SolverResult
from banditrank.utilities._formulas import CUSTOM, LINEAR, LOGARITHM
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]

LP_GAP = 1e-7  # distance from f at which no more tangents are added to the linear program
MAX_LP_ROUNDS = 200
MAX_RESCALINGS = 5  # of the program's unit
MIN_SHARE = 1e-6  # no tangents below this share of h_i: slopes are unbounded near a pole of f
MAX_SLOPE = 1e7  # in units of the program; HiGHS loses precision with steeper tangents


class Curve(NamedTuple):
    """A utility's f and f' on arrays of values."""

    height: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


class Optimum(NamedTuple):
    """The optimum of the program."""

    bound: float  # upper bound on any ranking's value; infinite if HiGHS was stopped without one
    cells: Floats | None  # (K, M) if there is a solution
    values: Floats | None  # (N,) u
    excess: Floats | None  # (N,) height of the tangents above f, in units; 0 for maximin
    nodes: int


class OuterProgram:
    """The integer program, to which tangents are added between optimisations.

    Parameters
    ----------
    instance
        An instance with positive weights.
    curve
        f and f', finite at the largest values; None for maximin.
    largest
        h, shape (N,): each type's value under its own best ranking.
    unit
        Unit of the losses.
    allowed
        Whether an item may be at a position, shape (K, M); all may if it is None.
    """

    def __init__(
        self,
        instance: Instance,
        curve: Curve | None,
        largest: Floats,
        unit: float,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        self.unit = unit
        self._allowed = np.ones((instance.n_positions, instance.n_items)) if allowed is None else allowed
        self._instance, self._curve, self._largest = instance, curve, largest
        self._scale = np.where(largest > 0.0, largest, 1.0)
        n_types, n_positions, n_items = instance.n_user_types, instance.n_positions, instance.n_items
        n_losses = n_types if curve else 1
        self._y = n_positions * n_items  # the number of cells, and the index of the first variable after them
        self._w = self._y + n_types
        self._constant = float(instance.weights @ curve.height(largest) if curve else largest.min())
        self._highspy, self._model = new_model("outer-approximation")
        bonuses = np.tile(instance.bonuses, n_positions)
        add_variables(
            self._model,
            costs=np.concatenate([-bonuses / unit, np.zeros(n_types), np.full(n_losses, -1.0)]),
            lower=np.concatenate([np.zeros(self._w), np.full(n_losses, -np.inf)]),
            upper=np.concatenate([self._allowed.ravel(), np.ones(n_types), np.zeros(n_losses)]),
        )
        self._add_assignment()
        if curve is None:  # w − h_i y_i ≤ −min h
            self._add_lines(np.arange(n_types), self._scale / unit, np.full(n_types, -largest.min() / unit))
        else:
            self._bound_near_zero(curve)

    def optimum(self, deadline: float) -> Optimum:
        """Solve the linear relaxation."""
        run_until(self._model, deadline)
        if self._is_infeasible():
            return Optimum(-np.inf, None, None, None, 1)
        if self._model.getModelStatus() != self._highspy.HighsModelStatus.kOptimal:
            return Optimum(np.inf, None, None, None, 1)
        return self._read(self._model.getInfo().objective_function_value, 1)

    def integer_optimum(self, deadline: float, gap: float, start: NDArray[np.intp]) -> Optimum:
        """Solve the integer program to an absolute gap, starting from a ranking."""
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
            return Optimum(np.inf, None, None, None, nodes)  # HiGHS failed: there is no proven bound
        # HiGHS prunes nodes that cannot improve its solution by the gap, and reports the solution as bound.
        bound = info.mip_dual_bound - gap / self.unit if np.isfinite(info.mip_dual_bound) else -np.inf
        if info.primal_solution_status != self._highspy.SolutionStatus.kSolutionStatusFeasible:
            return Optimum(self._constant - self.unit * bound, None, None, None, nodes)
        return self._read(bound, nodes)

    def add_tangents(self, values: Floats, floors: Floats) -> None:
        """Add each type's tangent at its value, or at its floor if that is larger."""
        if self._curve is None:
            return
        types = np.flatnonzero(self._largest > 0.0)  # the utility of the others is constant
        points, largest = np.maximum(values, floors)[types], self._largest[types]
        weights = self._instance.weights[types] / self.unit
        slopes = weights * self._curve.slope(points) * largest  # in y
        falls = weights * (self._curve.height(points) - self._curve.height(largest))
        self._add_lines(types, slopes, falls - slopes * points / largest)

    def floors(self, loss: float) -> Floats:
        """Return the values below which tangents are redundant, shape (N,).

        A ranking at which a single type loses more than ``loss`` is worse than the best one found, and the
        tangent at that point suffices to exclude it.
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
        """Add the assignment constraints, and y_i as a sum over cells."""
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

    def _bound_near_zero(self, curve: Curve) -> None:
        """Add constraints near value 0, where f may be infinitely steep and has no tangent.

        If f(0) = −∞, each type's value must be positive. Otherwise the line through f(0) and f(m), with m the
        smallest positive value of a cell to a type, is nowhere below f at the values of rankings.
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
        """Return ρ_ik μ_ij, 0 for cells that are not allowed, shape (N, K, M)."""
        return np.asarray(gains_of(self._instance) * self._allowed)

    def _add_lines(self, types: NDArray[np.intp], slopes: Floats, heights: Floats) -> None:
        """Add w_i ≤ height + slope · y_i."""
        losses = self._w + types if self._curve else np.full(types.size, self._w)
        rows = np.tile(np.arange(types.size), 2)
        variables = np.concatenate([losses, self._y + types])
        entries = np.concatenate([np.ones(types.size), -slopes])
        add_rows(self._model, (rows, variables, entries), np.full(types.size, -np.inf), heights)

    def _is_infeasible(self) -> bool:
        """Return whether a type's value is 0 in every ranking: the only cause of infeasibility."""
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


def gains_of(instance: Instance) -> Floats:
    """Return ρ_ik μ_ij, shape (N, K, M)."""
    return np.asarray(instance.preferences[:, :, None] * instance.means[:, None, :])


def curve_of(utility: Utility) -> Curve | None:
    """Return f and f' of a linear or concave utility; None for maximin.

    Examples
    --------
    >>> from banditrank.utilities._utility import NASH
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
    counts = instance.weights > 0.0  # weights of 0 would yield 0 · −∞
    weighted = Instance(
        instance.weights[counts], instance.preferences[counts], instance.means[counts], instance.bonuses
    )
    with np.errstate(divide="ignore", over="ignore"):  # −∞ at 0 is intended
        return _Search(weighted, utility, options).run()


class _Search:
    """Outer approximation of one instance: the best ranking and the best bound so far."""

    def __init__(self, instance: Instance, utility: Utility, options: SolverOptions) -> None:
        self._instance, self._utility, self._options = instance, utility, options
        self._curve = curve_of(utility)
        if options.allowed is None:
            attention = -np.sort(-instance.preferences, axis=1)
            best_means = -np.sort(-instance.means, axis=1)[:, : instance.n_positions]
            self._largest = (attention * best_means).sum(axis=1)  # (N,) h
        else:
            self._largest = np.array([best_assignment(own, options.allowed)[1] for own in gains_of(instance)])
        if self._curve is None:
            alone = self._largest.min(initial=np.inf)
        else:
            alone = instance.weights @ self._curve.height(self._largest)
        self._top = float(alone + np.sort(instance.bonuses)[-instance.n_positions :].sum())
        # HiGHS accepts constraints violated by its tolerance, so its bounds are not exact: each of the K
        # shown cells and of the 2 N other variables may contribute an error.
        self._error = max(1e-9, (instance.n_positions + 2 * instance.n_user_types) * TOLERANCE)
        self._bound, self._nodes = self._safe(self._top, 0.0), 0
        self._ranking = np.arange(instance.n_positions) if options.warm_start is None else options.warm_start
        self._value = -np.inf
        self._offer(self._ranking)

    def run(self) -> SolverResult:
        """Return the best ranking and bound within the options."""
        if not np.isfinite(self._bound):  # a type whose value is 0 in every ranking, or no types
            return SolverResult(self._ranking, self._bound, 0)
        self._offer(self._round(self._scores()))
        for _ in range(MAX_RESCALINGS):
            program = self._relaxed_phase()
            self._integer_phase(program)
            if self._is_done() or 0.25 <= program.unit / self._unit() <= 4.0:
                break
            # The program's unit was that of a far worse ranking: rescale it to the best one found.
        return SolverResult(self._ranking, self._bound, self._nodes)

    def _relaxed_phase(self) -> OuterProgram:
        """Add tangents at the optimum of the linear relaxation, until they are close to f there."""
        program = OuterProgram(
            self._instance, self._curve, self._largest, self._unit(), self._options.allowed
        )
        program.add_tangents(self._largest, self._largest)
        if self._value > -np.inf:
            program.add_tangents(np.zeros_like(self._largest), self._floors(program))
        for _ in range(MAX_LP_ROUNDS):
            if self._is_done():
                break
            optimum = self._take(program.optimum(self._options.deadline), program)
            if optimum.cells is None or optimum.values is None or optimum.excess is None:
                break
            self._offer(self._round(optimum.cells))
            floors = self._floors(program)
            can_improve = (optimum.excess > LP_GAP / optimum.excess.size) & (optimum.values > floors)
            if not can_improve.any():
                break
            program.add_tangents(optimum.values, floors)
        return program

    def _integer_phase(self, program: OuterProgram) -> None:
        """Add tangents at the optimum of the integer program, until its bound is the best value found."""
        seen: set[bytes] = set()
        while not self._is_done():
            gap = 0.1 * min(self._options.target_gap, 1e-9) * self._unit()
            optimum = program.integer_optimum(self._options.deadline, gap, self._ranking)
            self._take(optimum, program)
            if optimum.cells is None:
                return
            ranking = self._round(optimum.cells)
            if ranking.tobytes() in seen:  # its tangents are there already: the rest is rounding
                return
            seen.add(ranking.tobytes())
            self._offer(ranking)
            values = np.zeros(self._instance.n_user_types)
            values_of(self._instance, ranking.astype(np.uintp), values)
            program.add_tangents(values, self._floors(program))

    def _round(self, cells: Floats) -> Ranking:
        """Return a ranking of cells with large values."""
        if self._options.allowed is None:
            return _round(cells)
        return best_assignment(cells, self._options.allowed)[0]

    def _take(self, optimum: Optimum, program: OuterProgram) -> Optimum:
        self._bound = min(self._bound, self._safe(optimum.bound, program.unit))
        self._nodes += optimum.nodes
        return optimum

    def _safe(self, bound: float, unit: float) -> float:
        """Return a bound increased by the possible rounding error."""
        return bound + self._error * max(1.0, abs(bound), unit) if np.isfinite(bound) else bound

    def _offer(self, ranking: Ranking) -> None:
        """Store a ranking if it is the best so far."""
        value = total_value(self._instance, self._utility.compiled(), ranking)
        self._utility.raise_callback_error()
        if value > self._value:
            self._ranking, self._value = ranking, value

    def _is_done(self) -> bool:
        """Return whether the target gap or the deadline is reached."""
        if not self._bound > self._value or time.perf_counter() >= self._options.deadline:
            return True
        if self._value == -np.inf:
            return False
        close_enough = self._options.target_gap * gap_unit(self._utility.compiled(), self._value)
        return self._bound - self._value <= max(close_enough, 2.0 * self._error * max(1.0, abs(self._value)))

    def _unit(self) -> float:
        """Return the unit of gaps, bounded away from 0."""
        compiled = self._utility.compiled()
        largest = max(gap_unit(compiled, self._top), 1e-6)
        return largest if self._value == -np.inf else max(gap_unit(compiled, self._value), 1e-6 * largest)

    def _floors(self, program: OuterProgram) -> Floats:
        return program.floors(self._top - self._value)

    def _scores(self) -> Floats:
        """Return the scores of all cells, shape (K, M), at the tangents of the largest values."""
        slopes = np.ones_like(self._largest)
        if self._curve is not None:
            slopes = self._curve.slope(np.where(self._largest > 0.0, self._largest, 1.0))
        weighted = (self._instance.weights * slopes)[:, None] * self._instance.preferences  # (N, K)
        return np.asarray(weighted.T @ self._instance.means + self._instance.bonuses)


def _round(cells: Floats) -> Ranking:
    """Return a ranking by greedily taking the largest cell whose position and item are both free."""
    left = cells.copy()
    ranking = np.zeros(cells.shape[0], dtype=np.intp)
    for _ in range(cells.shape[0]):
        position, item = np.unravel_index(left.argmax(), left.shape)
        ranking[position] = item
        left[position, :] = -np.inf
        left[:, item] = -np.inf
    return ranking


SOLVER = Solver(_unsupported_reason, _run)
