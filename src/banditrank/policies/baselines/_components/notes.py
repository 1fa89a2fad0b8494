"""Numbers in the note of a state, which holds integers: see `banditrank.policies._kernel.Kernel`."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined

_MANTISSA_BITS = 53


@inlined
def note_float(note: NDArray[np.int64], mantissa_at: int, exponent_at: int, value: float) -> None:
    """Write a number to a note, to the last bit."""
    mantissa, exponent = math.frexp(value)
    note[mantissa_at] = int(math.ldexp(mantissa, _MANTISSA_BITS))
    note[exponent_at] = exponent


@inlined
def noted_float(note: NDArray[np.int64], mantissa_at: int, exponent_at: int) -> float:
    """Return a number that `note_float` wrote to a note."""
    return math.ldexp(float(note[mantissa_at]), note[exponent_at] - _MANTISSA_BITS)
