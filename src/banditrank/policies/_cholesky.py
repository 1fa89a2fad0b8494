"""Cholesky factors of small precision matrices H = L Lᵀ, and triangular solves."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, internal

Floats = NDArray[np.float64]


@compiled
def cholesky_factor(precision: Floats, factor: Floats, min_pivot: float = 1e-6) -> None:
    """Write the Cholesky factor L of a symmetric matrix, of which only the lower triangle is read.

    Shapes are (n, n); the factor may overwrite the matrix. Squared pivots are at least ``min_pivot``, to
    absorb rounding errors.

    Examples
    --------
    >>> factor = np.zeros((2, 2))
    >>> cholesky_factor(np.array([[4.0, 0.0], [2.0, 5.0]]), factor)
    >>> factor
    array([[2., 0.], [1., 2.]])
    """
    for row in range(precision.shape[0]):
        for column in range(row + 1):
            left = precision[row, column]
            for inner in range(column):
                left -= factor[row, inner] * factor[column, inner]
            if column < row:
                factor[row, column] = left / factor[column, column]
            else:
                factor[row, row] = math.sqrt(max(left, min_pivot))


@internal
def solve_lower(factor: Floats, vector: Floats) -> None:
    """Replace v, shape (n,), by L⁻¹ v."""
    for row in range(vector.size):
        left = vector[row]
        for column in range(row):
            left -= factor[row, column] * vector[column]
        vector[row] = left / factor[row, row]


@inlined
def solve_upper(factor: Floats, vector: Floats) -> None:
    """Replace v, shape (n,), by L⁻ᵀ v: standard normals by normals of precision L Lᵀ."""
    for row in range(factor.shape[0] - 1, -1, -1):
        left = vector[row]
        for column in range(row + 1, factor.shape[0]):
            left -= factor[column, row] * vector[column]
        vector[row] = left / factor[row, row]
