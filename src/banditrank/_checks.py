"""Validation of numeric arguments.

NumPy's numbers and other registered number types are accepted; booleans are not.
"""

from numbers import Integral, Real

from banditrank.errors import InvalidInputError

MAX_WORKERS = 1024
"""Maximum number of worker threads or processes."""


def check_number(field: str, value: float, low: float, high: float) -> float:
    """Return a number as a float if it lies in [low, high].

    Raises
    ------
    InvalidInputError
        If the value is not a number, or out of range.

    Examples
    --------
    >>> check_number("share", 1, 0, 1)
    1.0
    >>> check_number("share", 2, 0, 1)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: share must be a number from 0 to 1, got 2
    """
    if type(value) is float and low <= value <= high:  # nearly always: asking an abstract class takes longer
        return value
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high:
        raise InvalidInputError(field, f"must be a number from {low:,.15g} to {high:,.15g}", value)
    return float(value)


def check_integer(field: str, value: int | None, minimum: int, maximum: int | None = None) -> int:
    """Return a number as an int if it is whole and lies in [minimum, maximum].

    Parameters
    ----------
    field
        Name of the argument, for the message.
    value
        The value received; None is refused.
    minimum, maximum
        The allowed range; without an upper limit if ``maximum`` is None.

    Raises
    ------
    InvalidInputError
        If the value is not a whole number, or out of range.

    Examples
    --------
    >>> check_integer("seed", 7, 0)
    7
    >>> check_integer("seed", 1.5, 0)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: seed must be a whole number of at least 0, got 1.5
    """
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if value is None or not is_integer or value < minimum or (maximum is not None and value > maximum):
        limits = f"of at least {minimum:,}" if maximum is None else f"from {minimum:,} to {maximum:,}"
        raise InvalidInputError(field, f"must be a whole number {limits}", value)
    return int(value)


def check_workers(field: str, value: int | None) -> int | None:
    """Return a number of workers if it is valid; None stands for one per processor.

    Raises
    ------
    InvalidInputError
        If the value is not a whole number from 1 to `MAX_WORKERS`.

    Examples
    --------
    >>> check_workers("workers", 4)
    4
    >>> check_workers("workers", 100_000)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: workers must be a whole number from 1 to 1,024, got 100000
    """
    return None if value is None else check_integer(field, value, 1, MAX_WORKERS)
