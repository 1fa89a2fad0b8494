"""Schedules: the exploration probability ε_t of GreedyRank, and the bonus weight a_t of UCBRank.

The paper's experiments state "ε_t = a_t = c", which is not a probability for c = 5. Read as the coefficients
of ε_t = min(1, c/√t) and of the constant a_t = c they reproduce its Table 2. The theorems have schedules of
their own, which depend on the problem.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem

__all__ = [
    "Schedule",
    "as_schedule",
    "constant",
    "from_function",
    "inverse_square_root",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "theorem_4",
]

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]


SAMPLE_ROUNDS = np.array([1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 1_000_000])


@dataclass(frozen=True, slots=True)
class Schedule:
    """A number for each round t = 1, 2, ….

    Parameters
    ----------
    name
        Name in results.
    function
        Takes an array of rounds, then the parameters; returns an array of numbers, or one number for all
        rounds.
    parameters
        Further arguments of the function.
    coefficient
        Coefficient of the schedule, if it has one.

    Examples
    --------
    >>> inverse_square_root(coefficient=0.5)(np.array([1, 4, 100]))
    array([0.5 , 0.25, 0.05])
    >>> constant(coefficient=0.5) == constant(coefficient=0.5)
    True
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[Any, ...] = ()
    coefficient: float | None = None

    def __call__(self, rounds: Rounds) -> Floats:
        """Return the number of each round, shape (t,).

        Raises
        ------
        InvalidInputError
            If the function fails, or returns a number that is negative or not finite.
        """
        try:
            result = np.asarray(self.function(rounds, *self.parameters), dtype=np.float64)
            np.broadcast_to(result, rounds.shape)
        except (TypeError, ValueError, ArithmeticError) as error:
            rule = f"must return a number for each round ({type(error).__name__}: {error})"
            raise InvalidInputError(f"schedule {self.name}", rule, self.function) from error
        if not (result.min(initial=0.0) >= 0.0 and result.max(initial=0.0) < np.inf):  # nan is neither
            result = np.broadcast_to(result, rounds.shape)
            bad = ~((result >= 0) & (result < np.inf))
            where = f"{result[bad][0]} at round {rounds[bad][0]}"
            raise InvalidInputError(f"schedule {self.name}", "must be finite and not negative", where)
        return np.broadcast_to(result, rounds.shape)

    def sample(self) -> list[float]:
        """Return the numbers of a few rounds, which distinguish schedules."""
        return [float(value) for value in self(SAMPLE_ROUNDS)]


def constant(*, coefficient: float) -> Schedule:
    """Return the schedule c: a_t in the paper's experiments.

    Raises
    ------
    InvalidInputError
        If the coefficient is out of range.
    """
    c = _check_coefficient(coefficient)
    return Schedule("constant", _constant, (c,), c)


def inverse_square_root(*, coefficient: float) -> Schedule:
    """Return the schedule c/√t: ε_t in the paper's experiments.

    Raises
    ------
    InvalidInputError
        If the coefficient is out of range.
    """
    c = _check_coefficient(coefficient)
    return Schedule("inverse-square-root", _inverse_square_root, (c,), c)


def theorem_1(problem: Problem, *, reading: Literal["statement", "proof"] = "statement") -> Schedule:
    """Return ε_t of Theorem 1 (personalized GreedyRank): t^(−1/2), or N·t^(−1/2) as in its proof.

    Raises
    ------
    InvalidInputError
        If ``reading`` is neither ``statement`` nor ``proof``.
    """
    factor = 1.0 if _check_reading(reading) == "statement" else float(problem.n_user_types)
    return Schedule(f"theorem-1-{reading}", _inverse_square_root, (factor,))


def theorem_2(problem: Problem, *, end: Literal["lower", "upper"] = "lower") -> Schedule:
    """Return a_t of Theorem 2 (personalized UCBRank): an end of (2/min μ, √(t/ln t)].

    The theorem excludes the lower end itself. The interval is empty until √(t/ln t) exceeds its lower end;
    the upper end returned is never below the lower one.

    Raises
    ------
    InvalidInputError
        If a mean of the problem is 0, or ``end`` is neither ``lower`` nor ``upper``.
    """
    return _bonus_range("theorem-2", 2 / _min_mean(problem), end)


def theorem_3(problem: Problem) -> Schedule:
    """Return ε_t of Theorem 3 (equal GreedyRank): N·t^(−1/2)."""
    return Schedule("theorem-3", _inverse_square_root, (float(problem.n_user_types),))


def theorem_4(
    problem: Problem,
    *,
    lipschitz: float,
    reading: Literal["statement", "proof"] = "statement",
    end: Literal["lower", "upper"] = "lower",
) -> Schedule:
    """Return a_t of Theorem 4 (equal UCBRank): an end of (2L_f/min μ, √(t/ln t)].

    The proof needs 4L_f/min μ instead.

    Parameters
    ----------
    problem
        The problem.
    lipschitz
        L_f, the Lipschitz constant of the utility.
    reading
        Whether to use the lower end of the theorem's ``statement`` or of its ``proof``.
    end
        Which end of the interval to return.

    Raises
    ------
    InvalidInputError
        If a mean of the problem is 0, or a parameter is not valid.
    """
    if not 0 < lipschitz < np.inf:
        raise InvalidInputError("lipschitz", "must be positive and finite", lipschitz)
    factor = 2 if _check_reading(reading) == "statement" else 4
    lower = factor * lipschitz / _min_mean(problem)
    return _bonus_range(f"theorem-4-{reading}", lower, end)


def from_function(function: Callable[[int], float], *, name: str = "custom") -> Schedule:
    """Return the schedule of a function of one round; `Schedule` itself takes functions of arrays.

    Examples
    --------
    >>> from_function(lambda t: min(1.0, 3 / t))(np.array([1, 6]))
    array([1. , 0.5])
    """
    return Schedule(name, _call_for_each, (function,))


def as_schedule(schedule: Schedule | Callable[[int], float]) -> Schedule:
    """Return a schedule unchanged, and a function of the round as a schedule.

    Raises
    ------
    InvalidInputError
        If it is neither.
    """
    if isinstance(schedule, Schedule):
        return schedule
    if not callable(schedule):
        raise InvalidInputError("schedule", "must be a Schedule or a function of the round", schedule)
    return from_function(schedule)


def _constant(_: Rounds, value: float) -> float:
    return value


def _inverse_square_root(rounds: Rounds, factor: float) -> Floats:
    return np.asarray(factor / np.sqrt(rounds))


def _upper_end(rounds: Rounds, lower: float) -> Floats:
    t = np.maximum(rounds, 2)  # ln 1 = 0
    return np.asarray(np.maximum(lower, np.sqrt(t / np.log(t))))


def _call_for_each(rounds: Rounds, function: Callable[[int], float]) -> list[float]:
    return [function(int(t)) for t in rounds]


def _bonus_range(name: str, lower: float, end: str) -> Schedule:
    if end == "lower":
        return Schedule(name, _constant, (lower,))
    if end != "upper":
        raise InvalidInputError("end", "must be lower or upper", end)
    return Schedule(f"{name}-upper", _upper_end, (lower,))


def _check_coefficient(value: float) -> float:
    return check_number("coefficient", value, 0.0, 1e9)


def _check_reading(reading: str) -> str:
    if reading not in ("statement", "proof"):
        raise InvalidInputError("reading", "must be statement or proof", reading)
    return reading


def _min_mean(problem: Problem) -> float:
    mean = float(problem.item_means.min())
    if mean <= 0:
        raise InvalidInputError("item_means", "must all be positive for the theorem's schedule", mean)
    return mean
