"""Problems in TOML files.

The required keys are ``arrival_rates``, ``position_preferences`` and ``item_means``; ``name``,
``user_types``, ``items`` and ``click_scale`` are optional. The default name is that of the file.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from banditrank._files import atomic_write
from banditrank.errors import InvalidInputError, UnknownNameError, one_line
from banditrank.model._problem import Problem

REQUIRED_KEYS = ("arrival_rates", "position_preferences", "item_means")
KEYS = ("name", "user_types", "items", "click_scale", *REQUIRED_KEYS)


def read_problem(path: str | Path) -> Problem:
    """Read a problem from a TOML file.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not TOML, has unknown or missing keys, or does not describe a problem.
    """
    path = Path(path)
    values = read_keys(path, KEYS, REQUIRED_KEYS)
    try:
        return Problem.from_dict({"name": path.stem, **values})
    except InvalidInputError as error:
        raise InvalidInputError(f"{path.name}: {error.field}", error.rule, error.value) from None


def read_keys(path: Path, keys: Sequence[str], required: Sequence[str]) -> dict[str, Any]:
    """Return the values of a TOML file by key.

    Parameters
    ----------
    path
        The file.
    keys, required
        Allowed keys, and those of them that must be there.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not TOML, or has unknown or missing keys.
    """
    try:
        if path.exists() and not path.is_file():  # a directory, or a device without an end
            raise InvalidInputError("problem file", "must be a file", str(path))
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError.from_os("problem file", "must be readable", path, error) from None
    except (ValueError, RecursionError) as error:  # tomllib's own error is a ValueError
        if isinstance(error, InvalidInputError):
            raise
        reason = one_line(error)
        raise InvalidInputError("problem file", f"must be TOML ({reason})", str(path)) from None
    for key in values:
        if key not in keys:
            raise UnknownNameError(f"{path.name}: key", key, keys)
    for key in required:
        if key not in values:
            raise InvalidInputError(f"{path.name}: {key}", "must be given", None)
    return values


def write_problem(problem: Problem, path: str | Path) -> None:
    """Write a problem to a TOML file; `read_problem` returns an equal problem.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    write_toml(problem.to_dict(), path)


def write_toml(values: dict[str, Any], path: str | Path) -> None:
    """Write values to a TOML file.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    path = Path(path)
    try:
        with atomic_write(path) as new:
            new.write_text(tomli_w.dumps(values), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError.from_os("problem file", "must be writable", path, error) from None


def problem_to_toml(problem: Problem) -> str:
    """Return the problem as TOML.

    Examples
    --------
    >>> print(problem_to_toml(Problem([1.0], [[1.0]], [[0.25]])).splitlines()[0])
    name = "problem"
    """
    return tomli_w.dumps(problem.to_dict())
