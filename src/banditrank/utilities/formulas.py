"""The compiled side of utilities: f and Γ for every kind, including functions that users bring."""

import ctypes
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import compiler, ir
from numba.experimental import function_type  # noqa: F401 - teaches Numba the type of a `_Pointer`
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined

LINEAR, LOGARITHM, POWER, MINIMUM, CUSTOM, SIGMOID, RAMP = range(7)


class CompiledUtility(NamedTuple):
    """A utility as compiled formulas read it."""

    code: int
    parameter: float  # α of the power, the sigmoid's steepness, where the ramp begins
    threshold: float  # the sigmoid's midpoint, where the ramp ends
    lipschitz: float  # a bound on the slope; infinite if none is known
    function: Any  # a pointer to f: float64 → float64, called for CUSTOM only
    derivative: Any  # a pointer to f', called for CUSTOM only


@inlined
def utility_of(utility: CompiledUtility, value: float) -> float:
    """Return f(value); −∞ where the logarithm or a power with α > 1 has its pole."""
    if utility.code == LOGARITHM:
        return float(np.log(value))
    if utility.code == POWER:
        exponent = 1.0 - utility.parameter
        return float(value**exponent / exponent)
    if utility.code == CUSTOM:
        return float(utility.function(value))
    if utility.code == SIGMOID:
        return float(1.0 / (1.0 + np.exp(-utility.parameter * (value - utility.threshold))))
    if utility.code == RAMP:
        climbed = (value - utility.parameter) / (utility.threshold - utility.parameter)
        return min(1.0, max(0.0, climbed))
    return value


@inlined
def slope_of(utility: CompiledUtility, value: float) -> float:
    """Return f'(value) of a concave utility."""
    if utility.code == LOGARITHM:
        return 1.0 / value
    if utility.code == POWER:
        return float(value**-utility.parameter)
    if utility.code == CUSTOM:
        return float(utility.derivative(value))
    return 1.0


@inlined
def curvature_of(utility: CompiledUtility, value: float, slope: float) -> float:
    """Return −f''(value) of a concave utility whose slope there is known; never negative."""
    if utility.code == LOGARITHM:
        return slope * slope
    if utility.code == POWER:
        return utility.parameter * slope / value
    if utility.code == CUSTOM:
        step = 1e-5 * value
        return max(0.0, (slope - float(utility.derivative(value + step))) / step)
    return 0.0


@inlined
def collective(utility: CompiledUtility, weights: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return Γ = Σ_i weight_i f(value_i), or the minimum; types without weight do not count."""
    if utility.code == MINIMUM:
        total = np.inf
        for i in range(weights.size):
            if weights[i] > 0.0:
                total = min(total, values[i])
        return total
    total = 0.0
    for i in range(weights.size):
        if weights[i] > 0.0:  # 0 · −∞ would be nan
            total += weights[i] * utility_of(utility, values[i])
    return total


@compiled
def collectives(
    utility: CompiledUtility,
    weights: NDArray[np.float64],
    values: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> None:
    """Write Γ of each row of weights and values, both of shape (C, N)."""
    for row in range(totals.size):
        totals[row] = collective(utility, weights[row], values[row])


class _Pointer(numba.types.WrapperAddressProtocol):
    """A function as an address and a signature, so that formulas taking it are compiled only once."""

    def __init__(self, address: int, owner: object, failures: list[BaseException]) -> None:
        self._address = address
        self._owner = owner  # keeps the function alive
        self.failures = failures  # what the function raised, which compiled code cannot

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        return numba.types.float64(numba.types.float64)


def function_pointer(function: Callable[[float], float] | None) -> Any:
    """Return a pointer that compiled code can call; the identity when no function is given."""
    if function is not None:
        try:
            compiled = numba.cfunc("float64(float64)", error_model="numpy")(function)
            safe = not _may_raise(function)
        except Exception:  # noqa: BLE001 - whatever the compiler says, plain Python serves as well, slower
            safe = False
        if safe:
            return _Pointer(compiled.address or 0, compiled, [])
    failures: list[BaseException] = []

    def called_back(value: float) -> float:
        try:
            return float(function(value)) if function else value
        except BaseException as error:  # noqa: BLE001 - whatever it is, Ctrl-C too, it is told later
            failures.append(error)
            return math.nan

    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(called_back)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    return _Pointer(address, callback, failures)


def _may_raise(function: Callable[[float], float]) -> bool:
    """Return whether a function raises errors itself: compiled, it could not tell anybody."""
    raising = (ir.Raise, ir.StaticRaise, ir.DynamicRaise)
    frontend: Any = compiler.run_frontend  # has no types
    blocks = frontend(function).blocks.values()
    return any(isinstance(statement, raising) for block in blocks for statement in block.body)
