"""Collective utilities: what one ranking shown to everybody is worth, given its value to each user type.

Γ = Σ_i λ_i f(u_i) for an increasing f, or the worst-off type's min_i u_i. The shape of f decides which solver
can find the best ranking.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.utilities import formulas

CustomShape: TypeAlias = Literal["linear", "concave", "non-concave"]
Shape: TypeAlias = CustomShape | Literal["maximin"]


@dataclass(frozen=True, slots=True)
class Utility:
    """A collective utility and what is known of its shape.

    Use `UTILITARIAN`, `NASH`, `MAXIMIN`, `alpha_fair` or `custom`.

    Examples
    --------
    >>> round(NASH.collective([0.5, 0.5], [0.2, 0.8]), 6)  # half the logarithm of 0.16
    -0.916291
    >>> MAXIMIN.collective([0.5, 0.5], [0.2, 0.8])
    0.2
    """

    name: str
    shape: Shape
    code: int
    parameter: float = 0.0
    function: Callable[[float], float] | None = None
    derivative: Callable[[float], float] | None = None
    lipschitz: float | None = None

    def collective(self, weights: ArrayLike, values: ArrayLike) -> float:
        """Return Γ for the types' weights (arrival rates) and values, both of shape (N,).

        A type with weight 0 does not count, whatever its value.
        """
        shares, worth = np.asarray(weights, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if shares.ndim != 1 or shares.shape != worth.shape:
            raise InvalidInputError("weights and values", "must be lists of the same length", shares.shape)
        total = formulas.collective(self.compiled(), shares, worth)
        self.raise_failure()
        return total

    def of(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return f at each value. For maximin, whose Γ has no f, the value itself."""
        compiled = self.compiled()
        values = np.asarray(values, dtype=np.float64)
        flat = [formulas.utility_of(compiled, float(value)) for value in values.ravel()]
        self.raise_failure()
        return np.array(flat).reshape(values.shape)

    def raise_failure(self) -> None:
        """Raise an error if the function has failed since it was last asked."""
        failures = self.compiled().function.failures
        if failures:
            error = failures[0]
            failures.clear()
            rule = f"must give a number wherever it is asked ({type(error).__name__}: {error})"
            raise InvalidInputError("utility function", rule, self.name) from error

    def compiled(self) -> formulas.CompiledUtility:
        """Return the form that compiled formulas take."""
        return _compiled(self)

    def __str__(self) -> str:
        return self.name


UTILITARIAN = Utility("utilitarian", "linear", formulas.LINEAR, lipschitz=1.0)
"""f(u) = u: the total of all users' values."""

NASH = Utility("nash", "concave", formulas.LOGARITHM)
"""f(u) = ln u: −∞ if any type gets nothing, so efficiency is balanced against fairness."""

MAXIMIN = Utility("maximin", "maximin", formulas.MINIMUM)
"""Γ = min_i u_i: only the worst-off type counts."""


def alpha_fair(alpha: float) -> Utility:
    """Return f(u) = u^(1−α)/(1−α): utilitarian at α = 0, Nash at α = 1, towards maximin as α grows.

    Examples
    --------
    >>> alpha_fair(2).of([0.5, 1.0])
    array([-2., -1.])
    >>> alpha_fair(1) is NASH
    True
    """
    if isinstance(alpha, bool) or not (isinstance(alpha, int | float | np.number) and 0 <= alpha <= 1000):
        raise InvalidInputError("alpha", "must be a number from 0 to 1000", alpha)
    if alpha == 0:
        return UTILITARIAN
    if alpha == 1:
        return NASH
    return Utility(f"alpha:{alpha:.15g}", "concave", formulas.POWER, float(alpha))


def custom(
    function: Callable[[float], float],
    *,
    shape: CustomShape,
    derivative: Callable[[float], float] | None = None,
    lipschitz: float | None = None,
    name: str = "custom",
) -> Utility:
    """Return the utility of any increasing function of one number.

    The function is compiled if Numba can compile it, and called back from compiled code if not: that is
    correct too, and slower.

    Parameters
    ----------
    function
        f; must not decrease. It is asked for values in [0, 1], and above 1 where estimates or rewards
        exceed it.
    shape
        What you know of f. It is taken on trust where it cannot be checked cheaply.
    derivative, lipschitz
        f' and a bound on it, for the solvers that need them.

    Examples
    --------
    >>> squares = custom(lambda u: u * u, shape="non-concave", lipschitz=2.0)
    >>> round(squares.collective([0.5, 0.5], [0.2, 0.8]), 6)
    0.34
    """
    if not callable(function):
        raise InvalidInputError("utility function", "must be callable", function)
    if shape not in get_args(CustomShape):
        raise UnknownNameError("utility shape", str(shape), get_args(CustomShape))
    utility = Utility(
        name,
        shape,
        formulas.CUSTOM,
        function=function,
        derivative=derivative,
        lipschitz=lipschitz,
    )
    _check_shape(utility)
    return utility


def find_utility(name: "str | Utility") -> Utility:
    """Return a utility by name: ``utilitarian``, ``nash``, ``maximin`` or ``alpha:2``.

    Examples
    --------
    >>> find_utility("alpha:0.5").shape
    'concave'
    """
    if isinstance(name, Utility):
        return name
    name = str(name)
    named = {utility.name: utility for utility in (UTILITARIAN, NASH, MAXIMIN)}
    if name in named:
        return named[name]
    if name.startswith("alpha:"):
        try:
            alpha = float(name.removeprefix("alpha:"))
        except ValueError:
            raise InvalidInputError("utility", "must be alpha:NUMBER", name) from None
        return alpha_fair(alpha)
    raise UnknownNameError("utility", name, (*named, "alpha:2"))


@cache
def _compiled(utility: Utility) -> formulas.CompiledUtility:
    """Make the pointer once, and apart from the utility, which can then be pickled."""
    function = formulas.function_pointer(utility.function)
    return formulas.CompiledUtility(utility.code, utility.parameter, function)


def _check_shape(utility: Utility) -> None:
    """Catch the plain mistakes on a grid: a function that decreases, or bends the wrong way."""
    fine = np.geomspace(1e-6, 0.04, 10)
    grid = np.linspace(0.05, 1.0, 20)
    try:  # in Python, where a failure can be told
        function = cast("Callable[[float], float]", utility.function)
        small = np.array([function(float(u)) for u in fine], dtype=np.float64)
        values = np.array([function(float(u)) for u in grid], dtype=np.float64)
    except Exception as error:
        rule = f"must give a number on (0, 1] ({type(error).__name__}: {error})"
        raise InvalidInputError("utility function", rule, utility.name) from error
    everything = np.concatenate([small, values])
    if not np.isfinite(everything).all():
        bad = everything[~np.isfinite(everything)][0]
        raise InvalidInputError("utility function", "must be finite on (0, 1]", float(bad))
    slopes = np.diff(values)
    tolerance = 1e-9 * max(1.0, float(np.abs(values).max()))
    if (np.diff(everything) < -tolerance).any():
        raise InvalidInputError("utility function", "must not decrease on [0, 1]", utility.name)
    bends = np.diff(slopes)
    if utility.shape == "linear" and (np.abs(bends) > tolerance).any():
        raise InvalidInputError("utility shape", "must be linear as declared", utility.name)
    if utility.shape == "concave" and (bends > tolerance).any():
        raise InvalidInputError("utility shape", "must be concave as declared", utility.name)
