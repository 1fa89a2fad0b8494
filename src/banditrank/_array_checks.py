"""Validation of arrays of numbers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.errors import InvalidInputError

SUM_TOLERANCE = 1e-6  # probabilities printed with six decimals still count as summing to 1


def as_number_array(field: str, value: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    """Return a read-only array of numbers with one or two axes, which is not empty.

    Raises
    ------
    InvalidInputError
        If the value has another shape, is empty, or holds anything else.

    Examples
    --------
    >>> as_number_array("means", [[1, 2]], 2)
    array([[1., 2.]])
    """
    shape = "a list of numbers" if dimensions == 1 else "a list of rows of equal length"
    try:
        array = np.array(value, dtype=np.float64, order="C")  # one layout: loops are compiled for it
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(field, f"must be {shape}", value) from None
    if array.ndim != dimensions:
        raise InvalidInputError(field, f"must be {shape}", value)
    if array.size == 0:
        raise InvalidInputError(field, "must not be empty", value)
    array.flags.writeable = False
    return array


def check_entries(field: str, array: NDArray[np.float64], is_valid: NDArray[np.bool_], rule: str) -> None:
    """Check that all entries are valid.

    Raises
    ------
    InvalidInputError
        If one is not; it names the first.

    Examples
    --------
    >>> means = np.array([[0.2, 1.5]])
    >>> check_entries("means", means, means <= 1, "must be at most 1")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: means[0][1] must be at most 1, got 1.5
    """
    if not is_valid.all():
        index = tuple(np.argwhere(~is_valid)[0])
        entry = field + "".join(f"[{axis}]" for axis in index)
        raise InvalidInputError(entry, rule, float(array[index]))


def check_probabilities(field: str, probabilities: NDArray[np.float64]) -> None:
    """Check that probabilities, shape (n,), are positive and sum to 1.

    Raises
    ------
    InvalidInputError
        If they are not.
    """
    check_entries(field, probabilities, probabilities > 0, "must be positive")
    if abs(probabilities.sum() - 1) > SUM_TOLERANCE:
        raise InvalidInputError(field, "must sum to 1", float(probabilities.sum()))


def check_float64(field: str, array: NDArray[np.float64]) -> None:
    """Check that a value is an array of float64.

    Raises
    ------
    InvalidInputError
        If it is not.
    """
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        raise InvalidInputError(field, "must be an array of float64", array)


def check_shape(field: str, array: NDArray[np.float64], shape: tuple[int, ...]) -> None:
    """Check that an array has a shape.

    Raises
    ------
    InvalidInputError
        If it has another.
    """
    if array.shape != shape:
        raise InvalidInputError(field, f"must have shape {shape}", array.shape)
