"""Problems as TOML files.

The keys are ``arrival_rates``, ``position_preferences`` and ``item_means``, and if you like ``name``,
``user_types`` and ``items``; a problem without a name is called after its file.
"""

import tomllib
from pathlib import Path

import tomli_w

from banditrank.errors import InvalidInputError, UnknownNameError, one_line
from banditrank.files import atomic_write
from banditrank.model.problem import Problem

REQUIRED_KEYS = ("arrival_rates", "position_preferences", "item_means")
KEYS = ("name", "user_types", "items", *REQUIRED_KEYS)


def read_problem(path: str | Path) -> Problem:
    """Read a problem from a TOML file."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # a directory, or a device that never ends
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
        if key not in KEYS:
            raise UnknownNameError(f"{path.name}: key", key, KEYS)
    for key in REQUIRED_KEYS:
        if key not in values:
            raise InvalidInputError(f"{path.name}: {key}", "must be given", None)
    try:
        return Problem.from_dict({"name": path.stem, **values})
    except InvalidInputError as error:
        raise InvalidInputError(f"{path.name}: {error.field}", error.rule, error.value) from None


def write_problem(problem: Problem, path: str | Path) -> None:
    """Write a problem to a TOML file, so that reading it gives an equal problem."""
    path = Path(path)
    try:
        with atomic_write(path) as new:
            new.write_text(problem_to_toml(problem), encoding="utf-8")
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
