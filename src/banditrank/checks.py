"""Numbers that somebody gives: what they must be, and the error for those that are not.

Any kind of number will do, NumPy's included; true and false are none.
"""

from numbers import Integral, Real

from banditrank.errors import InvalidInputError

MAX_WORKERS = 1024
"""Threads: more than any one machine's work is divided into, and few enough to be started."""


def check_number(field: str, value: float, low: float, high: float) -> float:
    """Return a number from ``low`` to ``high``, or raise an error.

    Examples
    --------
    >>> check_number("share", 1, 0, 1)
    1.0
    >>> check_number("share", 2, 0, 1)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: share must be a number from 0 to 1, got 2
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high:
        raise InvalidInputError(field, f"must be a number from {low:,.15g} to {high:,.15g}", value)
    return float(value)


def check_integer(field: str, value: int, least: int, most: int | None = None) -> int:
    """Return a whole number of at least ``least``, and at most ``most`` if there is one, or raise an error.

    Examples
    --------
    >>> check_integer("seed", 7, 0)
    7
    >>> check_integer("seed", 1.5, 0)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: seed must be a whole number of at least 0, got 1.5
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise InvalidInputError(field, f"must be a whole number {limits}", value)
    return int(value)


def check_workers(field: str, value: int | None) -> int | None:
    """Return a number of threads, or None for one a processor; or raise an error.

    Examples
    --------
    >>> check_workers("workers", 4)
    4
    >>> check_workers("workers", 100_000)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: workers must be a whole number from 1 to 1,024, got 100000
    """
    return None if value is None else check_integer(field, value, 1, MAX_WORKERS)
