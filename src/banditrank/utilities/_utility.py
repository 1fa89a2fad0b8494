"""Collective utilities: the worth of a ranking shown to all user types, given its value to each type.

Γ = Σ_i λ_i f(u_i) for an increasing f, or min_i u_i for maximin. The shape of f determines which solver finds
the best ranking.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.utilities import _formulas as formulas

CustomShape: TypeAlias = Literal["linear", "concave", "non-concave"]
Shape: TypeAlias = CustomShape | Literal["maximin"]


@dataclass(frozen=True, slots=True)
class Utility:
    """A collective utility and its shape.

    Use `UTILITARIAN`, `NASH`, `MAXIMIN`, `alpha_fair`, `sigmoid`, `ramp` or `Utility.from_function`.

    Attributes
    ----------
    name
        The name in results and on the command line.
    shape
        ``linear``, ``concave``, ``non-concave`` or ``maximin``.
    code, parameter, threshold
        The formula and its parameters: see `banditrank.utilities._formulas`.
    function, derivative
        f and f' of a utility made with `from_function`.
    lipschitz
        An upper bound on f', if one is known.

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
    threshold: float = 0.0
    function: Callable[[float], float] | None = None
    derivative: Callable[[float], float] | None = None
    lipschitz: float | None = None

    @classmethod
    def from_function(
        cls,
        function: Callable[[float], float],
        *,
        shape: CustomShape,
        derivative: Callable[[float], float] | None = None,
        lipschitz: float | None = None,
        name: str = "custom",
    ) -> "Utility":
        """Return the utility of an increasing function f.

        The function is compiled if Numba can compile it, and is otherwise called back from compiled code,
        which is slower.

        Parameters
        ----------
        function
            f: a non-decreasing function of a number. It is evaluated on [0, 1], and above 1 where estimates
            or rewards exceed 1.
        shape
            The shape of f; checked on a grid only.
        derivative, lipschitz
            f' and an upper bound on f', for the solvers that need them.
        name
            The utility's name in results.

        Raises
        ------
        InvalidInputError
            If the function decreases, is not finite on (0, 1], or contradicts the declared shape, derivative
            or bound.

        Examples
        --------
        >>> squares = Utility.from_function(lambda u: u * u, shape="non-concave", lipschitz=2.0)
        >>> round(squares.collective([0.5, 0.5], [0.2, 0.8]), 6)
        0.34
        """
        if not callable(function):
            raise InvalidInputError("utility function", "must be callable", function)
        if shape not in get_args(CustomShape):
            raise UnknownNameError("utility shape", str(shape), get_args(CustomShape))
        utility = cls(
            name,
            shape,
            formulas.CUSTOM,
            function=function,
            derivative=derivative,
            lipschitz=lipschitz,
        )
        _check_shape(utility)
        return utility

    def collective(self, weights: ArrayLike, values: ArrayLike) -> float:
        """Return Γ for the types' weights (arrival rates) and values, both of shape (N,).

        A type of weight 0 does not count, whatever its value.

        Raises
        ------
        InvalidInputError
            If the shapes differ, or the utility's function fails.
        """
        rates, u = np.asarray(weights, dtype=np.float64), np.asarray(values, dtype=np.float64)
        if rates.ndim != 1 or rates.shape != u.shape:
            raise InvalidInputError("weights and values", "must be lists of the same length", rates.shape)
        total = formulas.collective(self.compiled(), rates, u)
        self.raise_callback_error()
        return total

    def collectives(self, weights: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
        """Return Γ of each row of values, shape (C,).

        Parameters
        ----------
        weights
            The types' weights, shape (N,) or (C, N).
        values
            Shape (C, N).

        Raises
        ------
        InvalidInputError
            If the values do not have two axes, or the utility's function fails.

        Examples
        --------
        >>> NASH.collectives([0.5, 0.5], [[0.2, 0.8], [1.0, 1.0]]).round(6)
        array([-0.916291,  0.      ])
        """
        u = np.ascontiguousarray(values, dtype=np.float64)
        if u.ndim != 2:
            raise InvalidInputError("values", "must be rows of the same length", u.shape)
        rates = np.ascontiguousarray(np.broadcast_to(np.asarray(weights, dtype=np.float64), u.shape))
        totals = np.empty(len(u))
        formulas.collectives(self.compiled(), rates, u, totals)
        self.raise_callback_error()
        return totals

    def evaluate(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return f at each value, in the shape of the values; the values themselves for maximin.

        Raises
        ------
        InvalidInputError
            If the utility's function fails.
        """
        compiled = self.compiled()
        values = np.asarray(values, dtype=np.float64)
        flat = [formulas.utility_of(compiled, float(value)) for value in values.ravel()]
        self.raise_callback_error()
        return np.array(flat).reshape(values.shape)

    @property
    def has_callback(self) -> bool:
        """Whether compiled code calls f or f' back in Python, because Numba cannot compile it."""
        n_functions = (self.function is not None) + (self.derivative is not None)
        return len(self.compiled_functions()) < n_functions

    def compiled_functions(self) -> list[Callable[[float], float]]:
        """Return those of f and f' that were compiled, and are not called back in Python."""
        compiled = self.compiled()
        pointers = (self.function, compiled.function), (self.derivative, compiled.derivative)
        return [
            function for function, pointer in pointers if function is not None and not pointer.is_callback
        ]

    def raise_callback_error(self) -> None:
        """Raise the first error of the utility's function or derivative since the last call.

        Compiled code cannot raise it: a failed callback records its error, and returns NaN without calling
        the function again until the error is raised here.

        Raises
        ------
        InvalidInputError
            If the function or the derivative has failed.
        """
        compiled = self.compiled()
        for role, pointer in (("function", compiled.function), ("derivative", compiled.derivative)):
            if pointer.failures:
                error = pointer.failures[0]
                pointer.failures.clear()
                if not isinstance(error, Exception):  # KeyboardInterrupt
                    raise error
                rule = f"must return a number ({type(error).__name__}: {error})"
                raise InvalidInputError(f"utility {role}", rule, self.name) from error

    def compiled(self) -> formulas.CompiledUtility:
        """Return the utility as compiled formulas read it."""
        return _compiled(self)

    def __deepcopy__(self, memo: object) -> "Utility":
        return self  # immutable, and compiled once

    def __str__(self) -> str:
        return self.name


UTILITARIAN = Utility("utilitarian", "linear", formulas.LINEAR, lipschitz=1.0)
"""f(u) = u: the total value over all users."""

NASH = Utility("nash", "concave", formulas.LOGARITHM)
"""f(u) = ln u: −∞ if a type's value is 0; balances efficiency and fairness."""

MAXIMIN = Utility("maximin", "maximin", formulas.MINIMUM)
"""Γ = min_i u_i: only the worst-off type counts."""


def alpha_fair(alpha: float) -> Utility:
    """Return f(u) = u^(1−α)/(1−α): utilitarian at α = 0, Nash at α = 1, towards maximin as α grows.

    Raises
    ------
    InvalidInputError
        If α is not between 0 and 1,000.

    Examples
    --------
    >>> alpha_fair(2).evaluate([0.5, 1.0])
    array([-2., -1.])
    >>> alpha_fair(1) is NASH
    True
    """
    alpha = check_number("alpha", alpha, 0.0, 1000.0)
    if alpha == 0:
        return UTILITARIAN
    if alpha == 1:
        return NASH
    return Utility(f"alpha:{alpha:.15g}", "concave", formulas.POWER, alpha)


def sigmoid(steepness: float = 20.0, midpoint: float = 0.3) -> Utility:
    """Return f(u) = 1 / (1 + e^(−steepness (u − midpoint))): a soft threshold on a type's value.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Examples
    --------
    >>> sigmoid(20, 0.3).evaluate([0.0, 0.3, 0.6]).round(3)
    array([0.002, 0.5  , 0.998])
    """
    s, m = check_number("steepness", steepness, 1e-6, 1e6), check_number("midpoint", midpoint, 0.0, 1e6)
    name = f"sigmoid:{s:.15g}:{m:.15g}"
    return Utility(name, "non-concave", formulas.SIGMOID, s, m, lipschitz=s / 4)


def ramp(begin: float = 0.2, end: float = 0.4) -> Utility:
    """Return f(u) = 0 up to ``begin``, 1 from ``end`` on, and linear in between.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, or ``end`` does not exceed ``begin``.

    Examples
    --------
    >>> ramp(0.2, 0.4).evaluate([0.1, 0.3, 0.5]).round(3)
    array([0. , 0.5, 1. ])
    """
    low, high = check_number("begin", begin, 0.0, 1e6), check_number("end", end, 0.0, 1e6)
    if high - low < 1e-6:
        raise InvalidInputError("end", f"must exceed begin ({low:g}) by at least 1e-6", end)
    name = f"ramp:{low:.15g}:{high:.15g}"
    return Utility(name, "non-concave", formulas.RAMP, low, high, lipschitz=1 / (high - low))


def as_utility(utility: Utility | str) -> Utility:
    """Return a utility, by name if a string is given.

    Parameters
    ----------
    utility
        A `Utility`, or ``utilitarian``, ``nash``, ``maximin``, ``alpha:2`` (`alpha_fair`), ``sigmoid:20:0.3``
        (`sigmoid`) or ``ramp:0.2:0.4`` (`ramp`).

    Raises
    ------
    UnknownNameError
        If there is no utility of this name.
    InvalidInputError
        If a parameter is invalid, or the value is neither a utility nor a string.

    Examples
    --------
    >>> as_utility("alpha:0.5").shape
    'concave'
    """
    if isinstance(utility, Utility):
        return utility
    if not isinstance(utility, str):
        raise InvalidInputError("utility", "must be a Utility or the name of one", utility)
    named = {known.name: known for known in (UTILITARIAN, NASH, MAXIMIN)}
    if utility in named:
        return named[utility]
    kind, *arguments = utility.split(":")
    if kind in PARAMETRIC and len(arguments) == PARAMETRIC[kind][1]:
        try:
            numbers = [float(argument) for argument in arguments]
        except ValueError:
            raise InvalidInputError("utility", f"must be {kind} with numbers after colons", utility) from None
        return PARAMETRIC[kind][0](*numbers)
    raise UnknownNameError("utility", utility, (*named, "alpha:2", "sigmoid:20:0.3", "ramp:0.2:0.4"))


PARAMETRIC: dict[str, tuple[Callable[..., Utility], int]] = {
    "alpha": (alpha_fair, 1),
    "sigmoid": (sigmoid, 2),
    "ramp": (ramp, 2),
}
"""Constructors of the utilities with parameters, and the number of parameters."""


@cache
def _compiled(utility: Utility) -> formulas.CompiledUtility:
    """Return the compiled form; cached here because pointers cannot be pickled with the utility."""
    return formulas.CompiledUtility(
        utility.code,
        utility.parameter,
        utility.threshold,
        np.inf if utility.lipschitz is None else utility.lipschitz,
        formulas.function_pointer(utility.function),
        formulas.function_pointer(utility.derivative),
    )


def _check_shape(utility: Utility) -> None:
    """Check on a grid that the function does not decrease and has the declared shape."""
    fine = np.geomspace(1e-6, 0.04, 10)
    grid = np.linspace(0.05, 1.0, 20)
    try:  # in Python, where errors propagate
        function = cast("Callable[[float], float]", utility.function)
        small = np.array([function(float(u)) for u in fine], dtype=np.float64)
        values = np.array([function(float(u)) for u in grid], dtype=np.float64)
    except Exception as error:
        rule = f"must return a number on (0, 1] ({type(error).__name__}: {error})"
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
    _check_slopes(utility, grid, values)


def _check_slopes(utility: Utility, grid: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Check on a grid that the derivative and the bound on it agree with the function."""
    chords = np.diff(values) / np.diff(grid)
    slack = 1e-6 * max(1.0, float(np.abs(chords).max()))
    if utility.lipschitz is not None:
        check_number("lipschitz", utility.lipschitz, 0.0, 1e300)
        if chords.max() > utility.lipschitz + slack:
            raise InvalidInputError("lipschitz", f"must be at least {chords.max():g}", utility.lipschitz)
    if utility.derivative is None:
        return
    try:
        slopes = np.array([utility.derivative(float(u)) for u in grid], dtype=np.float64)
    except Exception as error:
        rule = f"must return a number on (0, 1] ({type(error).__name__}: {error})"
        raise InvalidInputError("utility derivative", rule, utility.name) from error
    if not np.isfinite(slopes).all():
        bad = float(slopes[~np.isfinite(slopes)][0])
        raise InvalidInputError("utility derivative", "must be finite on (0, 1]", bad)
    concave = utility.shape == "concave"
    if concave and ((chords > slopes[:-1] + slack).any() or (chords < slopes[1:] - slack).any()):
        raise InvalidInputError("utility derivative", "must be that of the function", utility.name)
