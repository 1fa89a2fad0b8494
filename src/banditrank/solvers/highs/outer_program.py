"""The integer program of outer approximation, in HiGHS.

Cells x_kj say whether item j is at position k, y_i = u_i / h_i is a type's value as a share of the largest
that it could get, and w_i ≤ 0 is what its utility falls short of that, λ_i (f(u_i) − f(h_i)). For maximin
there is one w ≤ 0, what the minimum falls short of the least h_i. Losses are in units of what gaps are shares
of, because HiGHS' tolerances are absolute.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.solvers.highs.model import add_rows, add_variables, new_model, run_until
from banditrank.solvers.instance import Instance

Floats = NDArray[np.float64]

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
        no_preparation = curve.height(np.zeros(types.size))
        if no_preparation[0] == -np.inf:
            rows, cells = np.nonzero(gains[types])
            least, most = np.ones(types.size), np.full(types.size, np.inf)
            add_rows(self._model, (rows, cells, np.ones(rows.size)), least, most)
            return
        least = np.where(gains[types] > 0.0, gains[types], np.inf).min(axis=1)
        weights, largest = self._instance.weights[types] / self.unit, self._largest[types]
        slopes = weights * (curve.height(least) - no_preparation) / least * largest
        usable = slopes <= MAX_SLOPE
        falls = weights * (no_preparation - curve.height(largest))
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
