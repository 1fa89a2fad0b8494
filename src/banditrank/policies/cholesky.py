"""Small dense algebra for a normal distribution that is known by its precision H = L Lᵀ."""

import math

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined, internal

Floats = NDArray[np.float64]


@compiled
def cholesky_factor(precision: Floats, factor: Floats, min_pivot: float = 1e-6) -> None:
    """Write the Cholesky factor of a symmetric matrix, of which only the lower triangle is read.

    It may be written over the matrix. Squared pivots are raised to the smallest: what is less is rounding.

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
    """Replace v by L⁻¹ v."""
    for row in range(vector.size):
        left = vector[row]
        for column in range(row):
            left -= factor[row, column] * vector[column]
        vector[row] = left / factor[row, row]


@inlined
def solve_upper(factor: Floats, vector: Floats) -> None:
    """Replace v by L⁻ᵀ v: standard normals by normals of precision L Lᵀ."""
    for row in range(factor.shape[0] - 1, -1, -1):
        left = vector[row]
        for column in range(row + 1, factor.shape[0]):
            left -= factor[column, row] * vector[column]
        vector[row] = left / factor[row, row]


@inlined
def softmax(logits: Floats, shares: Floats) -> None:
    """Write e^θ_k / Σ e^θ.

    Examples
    --------
    >>> shares = np.zeros(2)
    >>> softmax(np.log([3.0, 1.0]), shares)
    >>> shares
    array([0.75, 0.25])
    """
    largest = logits[0]
    for k in range(1, shares.size):
        largest = max(largest, logits[k])
    total = 0.0
    for k in range(shares.size):
        shares[k] = math.exp(logits[k] - largest)
        total += shares[k]
    for k in range(shares.size):
        shares[k] /= total
