"""Contextual problems in TOML files.

The required keys are ``users``, ``item_features``, ``weights`` and ``position_preferences``; ``appeal``,
``feature_map``, ``items`` and ``name`` are optional. ``users`` is a table with the key ``features`` and,
optionally, ``probabilities``, ``standard_deviations`` and ``user_types``, or the list of rows itself.
"""

import tomllib
from pathlib import Path

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._problem_file import read_keys, read_problem, write_toml

REQUIRED_KEYS = ("users", "item_features", "weights", "position_preferences")
KEYS = ("name", "appeal", "feature_map", "items", *REQUIRED_KEYS)
USER_KEYS = ("features", "probabilities", "standard_deviations", "user_types")


def read_contextual_problem(path: str | Path) -> ContextualProblem:
    """Read a contextual problem from a TOML file.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not TOML, has unknown or missing keys, or does not describe a problem.
    """
    path = Path(path)
    values = read_keys(path, KEYS, REQUIRED_KEYS)
    users = values["users"]
    if isinstance(users, dict):
        for key in users:
            if key not in USER_KEYS:
                raise UnknownNameError(f"{path.name}: key of users", key, USER_KEYS)
        if "features" not in users:
            raise InvalidInputError(f"{path.name}: users.features", "must be given", None)
    try:
        return ContextualProblem.from_dict({"name": path.stem, **values})
    except InvalidInputError as error:
        raise InvalidInputError(f"{path.name}: {error.field}", error.rule, error.value) from None


def read_any_problem(path: str | Path) -> Problem | ContextualProblem:
    """Read a problem from a TOML file: a contextual one if the file has item features.

    Raises
    ------
    InvalidInputError
        If the file cannot be read, is not TOML, has unknown or missing keys, or does not describe a problem.
    """
    try:
        is_contextual = "item_features" in tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        is_contextual = False  # reported by the next line
    return read_contextual_problem(path) if is_contextual else read_problem(path)


def write_contextual_problem(problem: ContextualProblem, path: str | Path) -> None:
    """Write a contextual problem to a TOML file; `read_contextual_problem` returns an equal problem.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    write_toml(problem.to_dict(), path)
