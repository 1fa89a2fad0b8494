"""Schedules: ε_t, how probably GreedyRank explores, and a_t, how much UCBRank's bonus weighs.

The experiments of the paper say "ε_t = a_t = c". As probabilities these would not do (c = 5 occurs); read as
the coefficients of ε_t = min(1, c/√t) and of the constant a_t = c they reproduce the paper's Table 2. The
theorems have schedules of their own, which depend on the problem.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number
from banditrank.errors import InvalidInputError
from banditrank.model.problem import Problem

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]


SAMPLE_ROUNDS = np.array([1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 1_000_000])


@dataclass(frozen=True, slots=True)
class Schedule:
    """A number for each round t = 1, 2, ….

    Parameters
    ----------
    name
        What to call it in results.
    function
        From an array of rounds, then the parameters, to an array of numbers or one number for all.
    parameters
        What else the function takes.
    coefficient
        The number that the schedule is made of, if it is made of one.

    Examples
    --------
    >>> inverse_square_root(0.5)(np.array([1, 4, 100]))
    array([0.5 , 0.25, 0.05])
    >>> constant(0.5) == constant(0.5)
    True
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[Any, ...] = ()
    coefficient: float | None = None

    def __call__(self, rounds: Rounds) -> Floats:
        """Return the number of each round, shape (t,)."""
        try:
            result = np.asarray(self.function(rounds, *self.parameters), dtype=np.float64)
            np.broadcast_shapes(result.shape, rounds.shape)
        except (TypeError, ValueError, ArithmeticError) as error:
            rule = f"must give a number for each round ({type(error).__name__}: {error})"
            raise InvalidInputError(f"schedule {self.name}", rule, self.function) from error
        if not (result.min(initial=0.0) >= 0.0 and result.max(initial=0.0) < np.inf):  # nan is neither
            result = np.broadcast_to(result, rounds.shape)
            bad = ~((result >= 0) & (result < np.inf))
            where = f"{result[bad][0]} at round {rounds[bad][0]}"
            raise InvalidInputError(f"schedule {self.name}", "must be finite and not negative", where)
        return np.broadcast_to(result, rounds.shape)

    def sample(self) -> list[float]:
        """Return the numbers of a few rounds, to tell schedules apart."""
        return [float(value) for value in self(SAMPLE_ROUNDS)]


def constant(coefficient: float) -> Schedule:
    """Return c in every round: a_t in the paper's experiments."""
    c = _coefficient(coefficient)
    return Schedule("constant", _constant, (c,), c)


def inverse_square_root(coefficient: float) -> Schedule:
    """Return c/√t: ε_t in the paper's experiments."""
    c = _coefficient(coefficient)
    return Schedule("inverse-square-root", _inverse_square_root, (c,), c)


def theorem_1(problem: Problem, *, reading: Literal["statement", "proof"] = "statement") -> Schedule:
    """Return Theorem 1's ε_t (personalized GreedyRank): t^(−1/2), or N·t^(−1/2) as its proof sets it."""
    factor = 1.0 if _reading(reading) == "statement" else float(problem.n_user_types)
    return Schedule(f"theorem-1-{reading}", _inverse_square_root, (factor,))


def theorem_2(problem: Problem, *, end: Literal["lower", "upper"] = "lower") -> Schedule:
    """Return Theorem 2's a_t (personalized UCBRank), an end of (2/min μ, √(t/ln t)].

    The lower end itself is excluded by the theorem; any number above it will do. The interval is empty until
    √(t/ln t) exceeds its lower end; the upper end is therefore never below it.
    """
    return _bonus_range("theorem-2", 2 / _smallest_mean(problem), end)


def theorem_3(problem: Problem) -> Schedule:
    """Return Theorem 3's ε_t (equal GreedyRank): N·t^(−1/2)."""
    return Schedule("theorem-3", _inverse_square_root, (float(problem.n_user_types),))


def theorem_4(
    problem: Problem,
    *,
    lipschitz: float,
    reading: Literal["statement", "proof"] = "statement",
    end: Literal["lower", "upper"] = "lower",
) -> Schedule:
    """Return Theorem 4's a_t (equal UCBRank), an end of (2L_f/min μ, √(t/ln t)].

    The proof needs 4L_f/min μ instead.
    """
    if not 0 < lipschitz < np.inf:
        raise InvalidInputError("lipschitz", "must be positive and finite", lipschitz)
    factor = 2 if _reading(reading) == "statement" else 4
    lower = factor * lipschitz / _smallest_mean(problem)
    return _bonus_range(f"theorem-4-{reading}", lower, end)


def from_function(function: Callable[[int], float], *, name: str = "custom") -> Schedule:
    """Return the schedule of any function of the round; `Schedule` itself takes functions of arrays.

    Examples
    --------
    >>> from_function(lambda t: min(1.0, 3 / t))(np.array([1, 6]))
    array([1. , 0.5])
    """
    return Schedule(name, _one_by_one, (function,))


def as_schedule(
    value: "float | Schedule | Callable[[int], float]", make: Callable[[float], Schedule]
) -> Schedule:
    """Return a schedule as it is, a coefficient by ``make``, any other callable by `from_function`."""
    if isinstance(value, Schedule):
        return value
    if callable(value):
        return from_function(value)
    return make(value)


def _constant(_: Rounds, value: float) -> float:
    return value


def _inverse_square_root(rounds: Rounds, factor: float) -> Floats:
    return np.asarray(factor / np.sqrt(rounds))


def _upper_end(rounds: Rounds, lower: float) -> Floats:
    t = np.maximum(rounds, 2)  # ln 1 = 0
    return np.asarray(np.maximum(lower, np.sqrt(t / np.log(t))))


def _one_by_one(rounds: Rounds, function: Callable[[int], float]) -> list[float]:
    return [function(int(t)) for t in rounds]


def _bonus_range(name: str, lower: float, end: str) -> Schedule:
    if end == "lower":
        return Schedule(name, _constant, (lower,))
    if end != "upper":
        raise InvalidInputError("end", "must be lower or upper", end)
    return Schedule(f"{name}-upper", _upper_end, (lower,))


def _coefficient(value: float) -> float:
    return check_number("coefficient", value, 0.0, 1e9)


def _reading(reading: str) -> str:
    if reading not in ("statement", "proof"):
        raise InvalidInputError("reading", "must be statement or proof", reading)
    return reading


def _smallest_mean(problem: Problem) -> float:
    smallest = float(problem.item_means.min())
    if smallest <= 0:
        raise InvalidInputError("item_means", "must all be positive for the theorem's schedule", smallest)
    return smallest
