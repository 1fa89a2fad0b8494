"""Concave envelopes of non-concave functions on the interval of a type's value.

Spatial branch and bound splits these intervals: the smaller they are, the tighter is the envelope. The
envelope is sampled on a grid and only suggests slopes; bounds use `conjugate`, which is valid for any slopes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.utilities._formulas import RAMP, SIGMOID, CompiledUtility, utility_of

Floats = NDArray[np.float64]

GRID = 64  # cells of the sampled interval
_STIFFNESS = 50.0  # increase of the slope outside the interval, in slopes per width
_MAX_BISECTIONS = 2000  # in the search for the maximum of a user-defined function
_EPSILON = 1e-12


class Envelope(NamedTuple):
    """The interval [low, high] of each type's value, and the envelope of f on it."""

    low: Floats  # (N,)
    high: Floats  # (N,)
    heights: Floats  # (N, GRID + 1) f at the grid
    left: NDArray[np.int64]  # (N, GRID) the vertex of the envelope at the left of each cell
    right: NDArray[np.int64]  # (N, GRID) and at its right
    conjugates: Floats  # (N,) max_v λ_i f(v) − g_i v at the current slopes
    stack: Floats  # (…, 4) scratch: ends of intervals, and f there


def new_envelope(n_user_types: int, *, is_spatial: bool) -> Envelope:
    """Allocate envelopes for a number of types; minimal if f is concave."""
    n, cells = n_user_types, GRID if is_spatial else 1
    return Envelope(
        np.zeros(n),
        np.zeros(n),
        np.zeros((n, cells + 1)),
        np.zeros((n, cells), dtype=np.int64),
        np.zeros((n, cells), dtype=np.int64),
        np.zeros(n),
        np.zeros((GRID + _MAX_BISECTIONS if is_spatial else 1, 4)),
    )


@internal
def fit_envelope(utility: CompiledUtility, envelope: Envelope, i: int) -> None:
    """Sample f on the interval of type i, and compute the vertices of its envelope."""
    heights, left, right = envelope.heights[i], envelope.left[i], envelope.right[i]
    low, width = envelope.low[i], (envelope.high[i] - envelope.low[i]) / GRID
    for c in range(GRID + 1):
        heights[c] = utility_of(utility, low + c * width)
    # left[v - 1] is, while vertices are found, the vertex before v on the envelope of the grid up to v.
    for c in range(1, GRID + 1):
        v = c - 1
        while v > 0:
            before = left[v - 1]
            if (heights[v] - heights[before]) * (c - v) > (heights[c] - heights[v]) * (v - before):
                break
            v = before
        left[c - 1] = v
    v = GRID
    while v > 0:
        before = left[v - 1]
        for c in range(before, v):
            left[c] = before
            right[c] = v
        v = before


@inlined
def envelope_height(envelope: Envelope, i: int, value: float) -> float:
    """Return the envelope at a value; outside the interval it is extrapolated with a penalty."""
    low, high = envelope.low[i], envelope.high[i]
    heights = envelope.heights[i]
    inside = min(max(value, low), high)
    if high - low <= _EPSILON:
        return float(heights[0] - _STIFFNESS * abs(value - inside))
    width = (high - low) / GRID
    c = min(int((inside - low) / width), GRID - 1)
    a, b = envelope.left[i, c], envelope.right[i, c]
    share = ((inside - low) / width - a) / (b - a)
    height = heights[a] + share * (heights[b] - heights[a])
    if value != inside:
        slope, bend = envelope_slope(envelope, i, inside)
        outside = value - inside
        bend = max(bend, _STIFFNESS * slope / (high - low))
        height += slope * outside - 0.5 * bend * outside * outside
    return float(height)


@inlined
def envelope_slope(envelope: Envelope, i: int, value: float) -> tuple[float, float]:
    """Return the envelope's slope at a value, smoothed at vertices, and the negative second derivative."""
    low, high = envelope.low[i], envelope.high[i]
    heights = envelope.heights[i]
    if high - low <= _EPSILON:
        return (_STIFFNESS if value < low else 0.0), 0.0
    width = (high - low) / GRID
    inside = min(max(value, low), high)
    place = (inside - low) / width
    c = min(int(place), GRID - 1)
    a, b = envelope.left[i, c], envelope.right[i, c]
    slope = (heights[b] - heights[a]) / ((b - a) * width)
    bend = 0.0
    if b - place < 0.5 and b < GRID:
        after = (heights[envelope.right[i, b]] - heights[b]) / ((envelope.right[i, b] - b) * width)
        bend = (slope - after) / width
        slope -= bend * width * (0.5 - (b - place))
    elif place - a < 0.5 and a > 0:
        before_a = envelope.left[i, a - 1]
        before = (heights[a] - heights[before_a]) / ((a - before_a) * width)
        bend = (before - slope) / width
        slope += bend * width * (0.5 - (place - a))
    if value != inside:
        bend = max(bend, _STIFFNESS * slope / (high - low))
        slope -= bend * (value - inside)
    return slope, bend


@internal
def conjugate(
    utility: CompiledUtility, weight: float, slope: float, envelope: Envelope, i: int, enough: float
) -> float:
    """Return a bound on max_v weight·f(v) − slope·v over the interval of type i, tight to ``enough``."""
    low, high = envelope.low[i], envelope.high[i]
    best = max(
        weight * utility_of(utility, low) - slope * low, weight * utility_of(utility, high) - slope * high
    )
    if utility.code == SIGMOID:
        # Inside, the maximum is where f' = s f (1 − f) = slope / weight, on the concave side: f > 1/2.
        rest = 1.0 - 4.0 * slope / (weight * utility.parameter)
        if 0.0 < rest < 1.0:
            share = 0.5 + 0.5 * np.sqrt(rest)
            v = utility.threshold + np.log(share / (1.0 - share)) / utility.parameter
            v = min(max(v, low), high)
            best = max(best, weight * utility_of(utility, v) - slope * v)
        return float(best + _EPSILON * weight)
    if utility.code == RAMP:
        for corner in (utility.parameter, utility.threshold):
            v = min(max(corner, low), high)
            best = max(best, weight * utility_of(utility, v) - slope * v)
        return float(best + _EPSILON * weight)
    return _conjugate_by_bisection(utility, weight, slope, envelope, i, enough)


@inlined
def upper_bound_between(
    utility: CompiledUtility, weight: float, slope: float, a: float, b: float, f_a: float, f_b: float
) -> float:
    """Return an upper bound on weight·f(v) − slope·v between two points, for an increasing Lipschitz f."""
    if slope <= 0.0:
        return weight * f_b - slope * b
    if slope >= weight * utility.lipschitz:
        return weight * f_a - slope * a
    corner = min(b, a + max(0.0, f_b - f_a) / utility.lipschitz)  # before it f cannot have reached f_b
    return weight * f_b - slope * corner


@internal
def _conjugate_by_bisection(
    utility: CompiledUtility, weight: float, slope: float, envelope: Envelope, i: int, enough: float
) -> float:
    """Bisect intervals until none can exceed the best value by more than ``enough``; return the bound."""
    stack, heights = envelope.stack, envelope.heights[i]
    low, width = envelope.low[i], (envelope.high[i] - envelope.low[i]) / GRID
    best = -np.inf
    for c in range(GRID + 1):
        best = max(best, weight * heights[c] - slope * (low + c * width))
    count = 0
    for c in range(GRID):
        a = low + c * width
        at_most = upper_bound_between(utility, weight, slope, a, a + width, heights[c], heights[c + 1])
        if at_most > best + enough:
            stack[count] = a, a + width, heights[c], heights[c + 1]
            count += 1
    for _ in range(_MAX_BISECTIONS):
        if count == 0:
            return best + enough
        count -= 1
        a, b, f_a, f_b = stack[count]
        if upper_bound_between(utility, weight, slope, a, b, f_a, f_b) > best + enough:
            middle = 0.5 * (a + b)
            f_m = utility_of(utility, middle)
            best = max(best, weight * f_m - slope * middle)
            stack[count] = a, middle, f_a, f_m
            stack[count + 1] = middle, b, f_m, f_b
            count += 2
    bound = best + enough
    for s in range(count):
        a, b, f_a, f_b = stack[s]
        bound = max(bound, upper_bound_between(utility, weight, slope, a, b, f_a, f_b))
    return bound
