"""The best ranking by outer approximation: an integer program in which tangents stand for a concave utility.

A second opinion that shares no bound with the project's own branch and bound: HiGHS decides. As tangents lie
above a concave f, each optimum of the program is an upper bound. Tangents are added where the last optimum
lies, first without integrality and then with it, until the program promises no more than the best ranking
found (Duran and Grossmann 1986). Maximin and linear utilities need no more than one integer program.
"""

import time

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError
from banditrank.model.rankings import Ranking
from banditrank.solvers.assignment import slope
from banditrank.solvers.highs.outer_program import Curve, Optimum, OuterProgram
from banditrank.solvers.highs.model import TOLERANCE
from banditrank.solvers.instance import Instance, total_value, values_of
from banditrank.solvers.solver import SolverOptions, Solver, SolverResult
from banditrank.solvers.solution import gap_unit
from banditrank.utilities.formulas import CUSTOM, LINEAR, LOGARITHM
from banditrank.utilities.utility import Utility

Floats = NDArray[np.float64]

LP_GAP = 1e-7  # tangents are added to the linear program until they are this close to f
MAX_LP_ROUNDS = 200
MAX_RESCALINGS = 5  # how often the unit of the program may be changed


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
        return Curve(utility.of, lambda u: np.full_like(u, steepness))

    def derivative(values: Floats) -> Floats:
        slopes = [utility.derivative(float(u)) for u in values] if utility.derivative else []
        for bad in (s for s in slopes if not np.isfinite(s)):
            raise InvalidInputError("utility derivative", "must be finite at positive values", bad)
        return np.array(slopes, dtype=np.float64)

    return Curve(utility.of, derivative)


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
        self._instance, self._utility, self._limits = instance, utility, options
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
            optimum = self._take(program.optimum(self._limits.deadline), program)
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
            gap = 0.1 * min(self._limits.target_gap, 1e-9) * self._unit()
            optimum = program.integer_optimum(self._limits.deadline, gap, self._ranking)
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
        if not self._bound > self._value or time.perf_counter() >= self._limits.deadline:
            return True
        if self._value == -np.inf:
            return False
        close_enough = self._limits.target_gap * gap_unit(self._utility.compiled(), self._value)
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
