"""Compiled formulas of utilities: f, f', f'' and Γ, for built-in and user-defined functions."""

import ctypes
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import compiler, ir
from numba.experimental import function_type  # noqa: F401 - teaches Numba the type of a `_FunctionPointer`
from numpy.typing import NDArray

from banditrank._compilation import check_unchanged, compiled, inlined

LINEAR, LOGARITHM, POWER, MINIMUM, CUSTOM, SIGMOID, RAMP = range(7)


class CompiledUtility(NamedTuple):
    """A utility as compiled formulas read it."""

    code: int
    parameter: float  # α of the power, the steepness of the sigmoid, the begin of the ramp
    threshold: float  # the midpoint of the sigmoid, the end of the ramp
    lipschitz: float  # an upper bound on the slope; infinite if unknown
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
    """Return −f''(value) of a concave utility, given its slope there; never negative."""
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
    """Return Γ = Σ_i weight_i f(value_i), or the minimum; types of weight 0 do not count."""
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
    """Write Γ of each row of weights and values, both of shape (C, N), to totals, shape (C,)."""
    for row in range(totals.size):
        totals[row] = collective(utility, weights[row], values[row])


class _FunctionPointer(numba.types.WrapperAddressProtocol):
    """A function as an address and a signature: formulas that take it are compiled once for all functions."""

    def __init__(
        self, address: int, owner: object, failures: list[BaseException], *, is_callback: bool
    ) -> None:
        self._address = address
        self._owner = owner  # a reference, so that the function outlives its address
        self.failures = failures  # errors of the function: compiled code cannot raise them
        self.is_callback = is_callback  # whether the function is called back in Python

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        return numba.types.float64(numba.types.float64)


def function_pointer(function: Callable[[float], float] | None) -> Any:
    """Return a function pointer for compiled code; that of the identity if there is no function."""
    if function is not None:
        try:
            compiled = numba.cfunc("float64(float64)", error_model="numpy")(function)
            safe = not _may_raise(function)
        except Exception:  # noqa: BLE001 - any compiler error: fall back to calling Python
            safe = False
        if safe:
            check_unchanged(function)  # from here on
            return _FunctionPointer(compiled.address or 0, compiled, [], is_callback=False)
    failures: list[BaseException] = []

    def called_back(value: float) -> float:
        if failures:  # not yet raised: the caller computes nothing of use
            return math.nan
        try:
            return float(function(value)) if function else value
        except BaseException as error:  # noqa: BLE001 - raised later, KeyboardInterrupt included
            failures.append(error)
            return math.nan

    callback = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(called_back)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    return _FunctionPointer(address, callback, failures, is_callback=True)


def _may_raise(function: Callable[[float], float]) -> bool:
    """Return whether a function contains raise statements, which compiled code would ignore."""
    raising = (ir.Raise, ir.StaticRaise, ir.DynamicRaise)
    frontend: Any = compiler.run_frontend  # has no types
    blocks = frontend(function).blocks.values()
    return any(isinstance(statement, raising) for block in blocks for statement in block.body)
