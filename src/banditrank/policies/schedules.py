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

from banditrank.errors import InvalidInputError
from banditrank.model.problem import Problem

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A number for each round t = 1, 2, ….

    Parameters
    ----------
    name
        What to call it in results.
    values
        From an array of rounds to an array of numbers, or to one number for all.
    coefficient
        The number that the schedule is made of, if it is made of one.

    Examples
    --------
    >>> inverse_square_root(0.5)(np.array([1, 4, 100]))
    array([0.5 , 0.25, 0.05])
    """

    name: str
    values: Callable[[Rounds], Any]
    coefficient: float | None = None

    def __call__(self, rounds: Rounds) -> Floats:
        """Return the number of each round, shape (t,)."""
        result = np.asarray(self.values(rounds), dtype=np.float64)
        if not (result.min(initial=0.0) >= 0.0 and result.max(initial=0.0) < np.inf):  # nan is neither
            result = np.broadcast_to(result, rounds.shape)
            bad = ~((result >= 0) & (result < np.inf))
            where = f"{result[bad][0]} at round {rounds[bad][0]}"
            raise InvalidInputError(f"schedule {self.name}", "must be finite and not negative", where)
        return np.broadcast_to(result, rounds.shape)


def constant(coefficient: float) -> Schedule:
    """Return c in every round: a_t in the paper's experiments."""
    c = _coefficient(coefficient)
    return Schedule("constant", lambda _: c, c)


def inverse_square_root(coefficient: float) -> Schedule:
    """Return c/√t: ε_t in the paper's experiments."""
    c = _coefficient(coefficient)
    return Schedule("inverse-square-root", lambda rounds: c / np.sqrt(rounds), c)


def theorem_1(problem: Problem, *, reading: Literal["statement", "proof"] = "statement") -> Schedule:
    """Return Theorem 1's ε_t (personalized GreedyRank): t^(−1/2), or N·t^(−1/2) as its proof sets it."""
    factor = 1.0 if _reading(reading) == "statement" else float(problem.n_user_types)
    return Schedule(f"theorem-1-{reading}", inverse_square_root(factor).values)


def theorem_2(problem: Problem, *, end: Literal["lower", "upper"] = "lower") -> Schedule:
    """Return Theorem 2's a_t (personalized UCBRank), an end of (2/min μ, √(t/ln t)].

    The interval is empty until √(t/ln t) exceeds its lower end; the upper end is therefore never below it.
    """
    return _bonus_range("theorem-2", 2 / _smallest_mean(problem), end)


def theorem_3(problem: Problem) -> Schedule:
    """Return Theorem 3's ε_t (equal GreedyRank): N·t^(−1/2)."""
    return Schedule("theorem-3", inverse_square_root(float(problem.n_user_types)).values)


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


def from_function(
    function: Callable[[int], float], *, name: str = "custom", vectorized: bool = False
) -> Schedule:
    """Return the schedule of any function of the round.

    Parameters
    ----------
    function
        From t to a number, or with ``vectorized`` from an array of rounds to an array of numbers.

    Examples
    --------
    >>> from_function(lambda t: min(1.0, 3 / t))(np.array([1, 6]))
    array([1. , 0.5])
    """
    if vectorized:
        return Schedule(name, function)  # type: ignore[arg-type]
    return Schedule(name, lambda rounds: [function(int(t)) for t in rounds])


def as_schedule(
    value: "float | Schedule | Callable[[int], float]", make: Callable[[float], Schedule]
) -> Schedule:
    """Return a schedule as it is, a coefficient by ``make``, any other callable by `from_function`."""
    if isinstance(value, Schedule):
        return value
    if callable(value):
        return from_function(value)
    return make(value)


def _bonus_range(name: str, lower: float, end: str) -> Schedule:
    if end == "lower":
        return Schedule(name, lambda _: lower)
    if end != "upper":
        raise InvalidInputError("end", "must be lower or upper", end)

    def upper(rounds: Rounds) -> Floats:
        t = np.maximum(rounds, 2)  # ln 1 = 0
        return np.asarray(np.maximum(lower, np.sqrt(t / np.log(t))))

    return Schedule(f"{name}-upper", upper)


def _coefficient(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
        raise InvalidInputError("coefficient", "must be a number of at least 0", value)
    return float(value)


def _reading(reading: str) -> str:
    if reading not in ("statement", "proof"):
        raise InvalidInputError("reading", "must be statement or proof", reading)
    return reading


def _smallest_mean(problem: Problem) -> float:
    smallest = float(problem.item_means.min())
    if smallest <= 0:
        raise InvalidInputError("item_means", "must all be positive for the theorem's schedule", smallest)
    return smallest
