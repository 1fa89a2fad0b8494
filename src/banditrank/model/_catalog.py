"""Built-in problems, and loading of problems by name or path."""

import os
from collections.abc import Sequence
from pathlib import Path

from banditrank.errors import InvalidInputError
from banditrank.model._carousel import read_carousel
from banditrank.model._contextual_generators import make_contextual_problem
from banditrank.model._contextual_problem import Appeal, ContextualProblem
from banditrank.model._contextual_problem_file import read_any_problem
from banditrank.model._generators import CAROUSEL
from banditrank.model._problem import Problem
from banditrank.model._problem_file import read_problem

BUILT_IN = ("kdd2012",)
CONTEXTUAL_BUILT_IN = ("linear-context", "logistic-context")


def kdd2012() -> Problem:
    """Return the problem of the paper's Table 1, as printed.

    Two user types and the five most frequent ads of KDD Cup 2012 track 2, in positions 1 and 2. Position 2
    is examined more often than position 1.

    Examples
    --------
    >>> kdd2012().position_preferences[0]
    array([0.323, 0.677])
    """
    return Problem(
        [0.52, 0.48],
        [[0.323, 0.677], [0.416, 0.584]],
        [[0.357, 0.471, 0.604, 0.808, 0.564], [0.247, 0.327, 0.491, 0.49, 0.303]],
        user_types=["male", "female"],
        items=["ad-1", "ad-2", "ad-3", "ad-4", "ad-5"],
        name="kdd2012",
    )


def load_problem(name_or_path: str | Path) -> Problem:
    """Load a built-in problem by name, a carousel, or a problem from a TOML file.

    Parameters
    ----------
    name_or_path
        One of `BUILT_IN`, ``carousel:DIRECTORY`` (see `make_problem`), or the path of a file (see
        `banditrank.model._problem_file`).

    Raises
    ------
    InvalidInputError
        If there is neither a built-in problem nor a file of this name, or the file cannot be read or does not
        describe a problem.

    Examples
    --------
    >>> load_problem("kdd2012").user_types
    ('male', 'female')
    """
    return _known_problem(name_or_path) or read_problem(_problem_path(name_or_path, BUILT_IN))


def load_any_problem(name_or_path: str | Path) -> Problem | ContextualProblem:
    """Load a built-in problem by name, a carousel, or a problem with or without features from a TOML file.

    Parameters
    ----------
    name_or_path
        One of `BUILT_IN` or `CONTEXTUAL_BUILT_IN`, ``carousel:DIRECTORY``, or the path of a file.

    Raises
    ------
    InvalidInputError
        If there is neither a built-in problem nor a file of this name, or the file cannot be read or does not
        describe a problem.

    Examples
    --------
    >>> load_any_problem("logistic-context")
    <ContextualProblem logistic-context: logistic appeal, 20 features, 100 items, 5 positions>
    """
    if known := _known_problem(name_or_path):
        return known
    if name_or_path in CONTEXTUAL_BUILT_IN:
        return contextual_problem("linear" if name_or_path == "linear-context" else "logistic")
    return read_any_problem(_problem_path(name_or_path, (*BUILT_IN, *CONTEXTUAL_BUILT_IN)))


def carousel_directory(name: object) -> str | None:
    """Return the directory that the name of a carousel has, None if it is no carousel's.

    Examples
    --------
    >>> carousel_directory("carousel:data/carousel"), carousel_directory("kdd2012")
    ('data/carousel', None)
    """
    prefix = f"{CAROUSEL}:"
    return name.removeprefix(prefix) if isinstance(name, str) and name.startswith(prefix) else None


def _known_problem(name_or_path: str | Path) -> Problem | None:
    """Return a problem that is not read from a TOML file and has no features."""
    if (directory := carousel_directory(name_or_path)) is not None:
        return read_carousel(directory)
    return kdd2012() if name_or_path == "kdd2012" else None


def contextual_problem(appeal: Appeal, seed: int = 0) -> ContextualProblem:
    """Return the built-in contextual problem: 20 features, 100 items and 5 positions."""
    made = make_contextual_problem(appeal, seed=seed)
    return ContextualProblem.from_dict({**made.to_dict(), "name": f"{appeal}-context"})


def _problem_path(name_or_path: str | Path, built_in: Sequence[str]) -> str:
    """Return the path of a problem file."""
    text = str(name_or_path)
    rule = f"must be {', '.join(built_in)}, {CAROUSEL}:DIRECTORY or the path of a TOML file"
    if not text.strip():
        raise InvalidInputError("problem", rule, text)
    is_path = isinstance(name_or_path, Path) or "/" in text or text.endswith(".toml")
    if is_path or os.path.isfile(text):  # noqa: PTH113 - Path.is_file fails on impossible names
        return text
    raise InvalidInputError("problem", rule, text)
