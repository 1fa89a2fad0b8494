"""Import of optional dependencies, with a clear message if they are not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from banditrank.errors import MissingDependencyError

_FRAMES = ("pandas", "pyarrow")
_PLOTS = ("matplotlib",)
PACKAGES = {
    "frames": _FRAMES,
    "logs": ("duckdb", "pyarrow"),
    "plots": _PLOTS,
    "polars": ("polars",),
    "ray": ("ray",),
    "reports": (*_FRAMES, *_PLOTS, "jinja2"),
    "spark": ("pyarrow", "pyspark"),
}
"""Packages of the extras that `check_extras` accepts."""


@contextmanager
def requires(extra: str, purpose: str) -> Iterator[None]:
    """Import optional dependencies within a ``with`` block.

    Parameters
    ----------
    extra
        Extra of this package that installs them.
    purpose
        What they are required for; part of the message.

    Raises
    ------
    MissingDependencyError
        If an import fails because a package is not installed.

    Examples
    --------
    >>> with requires("plots", "plotting"):
    ...     import absent
    Traceback (most recent call last):
    banditrank.errors.MissingDependencyError: absent is required for plotting: pip install 'banditrank[plots]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(purpose, [str(error.name)], [extra]) from error


def check_extras(purpose: str, *extras: str) -> None:
    """Check before long computations that the packages of extras are installed, without importing them.

    Parameters
    ----------
    purpose
        What they are required for; part of the message.
    extras
        Keys of `PACKAGES`.

    Raises
    ------
    MissingDependencyError
        If a package is not installed; names all missing packages and their extras.

    Examples
    --------
    >>> check_extras("the report", "reports", "logs")
    """
    required = {extra: PACKAGES[extra] for extra in extras}
    missing = {
        package for packages in required.values() for package in packages if find_spec(package) is None
    }
    if missing:
        incomplete = [extra for extra, packages in required.items() if not missing.isdisjoint(packages)]
        raise MissingDependencyError(purpose, sorted(missing), sorted(incomplete))
