"""Suites of the user's own problems: files, problems, functions and `Suite` objects."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from banditrank._import_path import import_object, is_import_path
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments._compare.names import check_name, to_name
from banditrank.experiments._compare.policy_variants import ALL_NAME
from banditrank.experiments._compare.suites import (
    SUITES,
    AnyProblem,
    ProblemSource,
    Suite,
    carousel_suite,
    describe_size,
)
from banditrank.model._catalog import carousel_directory
from banditrank.model._contextual_problem_file import read_any_problem
from banditrank.model._generators import CAROUSEL

SuiteSource: TypeAlias = str | Path | ProblemSource | Suite
"""Name of a suite, path of a problem file, import path, problem, function that returns one, or suite."""

REPRODUCTIONS_NAME = "reproductions"
"""Name beside the suites for the reproductions of the policies' own papers."""

SUITE_NAMES = (*SUITES, REPRODUCTIONS_NAME)

_RESERVED_NAMES = (*SUITE_NAMES, ALL_NAME, "leaderboard")
_RESERVED_PREFIX = "paper-"  # of the names of reproductions
_MIN_SLOW_ITEMS = 100  # from here on a quick run leaves out PMED
_KIND = "a Problem, a Timeline, a ContextualProblem, a Suite or a function that returns a problem"


def find_suites(given: Sequence[SuiteSource] = ()) -> tuple[list[Suite], bool]:
    """Return the suites, the built-in ones first, and whether reproductions are asked for.

    Parameters
    ----------
    given
        Names of built-in suites, ``reproductions``, ``all`` for both, ``carousel:DIRECTORY`` for the files of
        a carousel, TOML files, import paths such as
        ``my_module:my_problem``, problems, functions that return a problem given the horizon, or suites. All
        built-in ones if empty.

    Raises
    ------
    UnknownNameError
        If there is no suite of a name.
    InvalidInputError
        If a file or an object is not a problem, or its name is in use.

    Examples
    --------
    >>> from banditrank import kdd2012
    >>> suites, has_reproductions = find_suites(["cascade", kdd2012(), "table1"])
    >>> [suite.name for suite in suites], has_reproductions
    (['table1', 'cascade', 'kdd2012'], False)
    """
    names = {each for each in given if isinstance(each, str) and each in (*SUITE_NAMES, ALL_NAME)}
    is_all = not given or ALL_NAME in names
    built_in = [suite for name, suite in SUITES.items() if is_all or name in names]
    custom: dict[str, tuple[str, Suite]] = {}
    for each in given:
        if isinstance(each, str) and each in names:
            continue
        label, suite = _make_suite(each)
        key = suite.name.lower()  # a directory, whose name may not be case-sensitive
        if key in _RESERVED_NAMES or key.startswith(_RESERVED_PREFIX):
            rule = f"must have a name of its own, and {suite.name!r} is built in"
            raise InvalidInputError("suite", rule, label)
        if key in custom and custom[key][1] != suite:
            rule = f"must have a name of its own, and {suite.name!r} is that of {custom[key][0]}"
            raise InvalidInputError("suite", rule, label)
        custom.setdefault(key, (label, suite))
    return [*built_in, *(suite for _, suite in custom.values())], is_all or REPRODUCTIONS_NAME in names


def _make_suite(given: SuiteSource) -> tuple[str, Suite]:
    """Return how the user refers to a suite, and the suite."""
    if isinstance(given, str | Path):
        return str(given), _load_suite(given)
    label = getattr(given, "name", None) or getattr(given, "__name__", None) or repr(given)
    return str(label), _from_object(given, str(label))


def _load_suite(given: str | Path) -> Suite:
    """Return the suite of a problem file or an import path."""
    text = str(given)
    if (directory := carousel_directory(given)) is not None:
        return carousel_suite(directory)
    if isinstance(given, Path) or text.endswith(".toml") or "/" in text:
        return _from_object(read_any_problem(given), text)
    if not is_import_path(text):
        known = (*SUITE_NAMES, ALL_NAME, f"{CAROUSEL}:DIRECTORY", "the path of a TOML file", "MODULE:NAME")
        raise UnknownNameError("suite", text, known)
    return _from_object(import_object("suite", text, _is_suite_source, _KIND), text)


def _is_suite_source(source: object) -> bool:
    is_function = callable(source) and not isinstance(source, type)
    return isinstance(source, Suite | AnyProblem) or is_function


def _from_object(source: ProblemSource | Suite, label: str) -> Suite:
    if isinstance(source, Suite):
        return source
    if not _is_suite_source(source):
        raise InvalidInputError("suite", f"must be {_KIND}, or the name of one", source)
    if not isinstance(source, AnyProblem):
        title = str(getattr(source, "__name__", label))
        name = check_name("suite", to_name(title), label)
        return Suite(name=name, title=title, problem=source)
    return Suite(
        name=check_name("suite", to_name(source.name), label),
        title=source.name,
        description=f"A custom problem, {label}: {describe_size(source)}",
        problem=source,
        skipped_when_quick=("pmed",) if source.n_items >= _MIN_SLOW_ITEMS else (),
    )
