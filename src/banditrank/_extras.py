"""Import of optional dependencies, with a clear message if they are not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from banditrank.errors import MissingDependencyError


@contextmanager
def requires(extra: str, purpose: str) -> Iterator[None]:
    """Import optional dependencies within a ``with`` block.

    Parameters
    ----------
    extra
        Extra of this package that installs them.
    purpose
        What they are needed for; begins the message.

    Raises
    ------
    MissingDependencyError
        If an import fails because a package is not installed.

    Examples
    --------
    >>> with requires("plots", "plotting"):
    ...     import absent
    Traceback (most recent call last):
    banditrank.errors.MissingDependencyError: plotting needs absent: pip install 'banditrank[plots]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(purpose, str(error.name), extra) from error
