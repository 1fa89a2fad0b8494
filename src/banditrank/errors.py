"""Exceptions of the package.

::

    BanditRankError                     base class
    ├── InvalidInputError               an argument is invalid (also a ValueError)
    │   ├── UnknownNameError            a name is not one of the known names
    │   │   ├── UnknownFieldError       a body or a definition has no field of this name
    │   │   └── UnknownSurfaceError     the store has no surface of this name
    │   └── AlreadyExistsError          the name is already in use
    ├── NoExperimentError               the surface has no experiment
    ├── UnsolvableError                 the solver does not support the problem
    ├── PrunedError                     the data was pruned at the end of its retention
    ├── FeedbackError                   the feedback was rejected
    │   ├── UnknownRankingError         the ranking id is unknown, or its surface was deleted
    │   ├── ExpiredRankingError         the ranking's attribution window is closed
    │   └── ConflictingFeedbackError    different feedback was reported for the ranking
    ├── MissingDependencyError          an optional package is not installed (also an ImportError)
    ├── CompilingError                  the surface is not loaded yet, because code is compiled: retry
    ├── ServiceError                    the service refused a request, or could not be reached
    └── StoreError                      the store cannot be used
        └── StoreUnavailableError       the store cannot be reached, is full or too slow: retry

A message is one line.
"""

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePath

from banditrank._text import MAX_LENGTH, list_names, shorten

_MAX_LISTED = 30  # allowed names in a message
_MAX_COMPARED = 1000  # allowed names that are compared with the one received
_MAX_COMPARED_LENGTH = 64  # characters of a name that are compared: the time is quadratic in it


class BanditRankError(Exception):
    """Base class of all exceptions that the package raises."""


class InvalidInputError(BanditRankError, ValueError):
    """An argument is invalid.

    Parameters
    ----------
    field
        Name of the argument: ``arrival_rates``, ``--horizon``.
    rule
        The constraint: ``must sum to 1``.
    value
        The value received.

    Examples
    --------
    >>> print(InvalidInputError("horizon", "must be at least 1", 0))
    horizon must be at least 1, got 0
    >>> print(InvalidInputError("log", "must be a file", PurePath("directory/" * 9, "clicks.csv")))
    log must be a file, got '…ectory/directory/directory/directory/directory/directory/directory/clicks.csv'
    """

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {_shorten(value)}")
        self.field = field
        self.rule = rule
        self.value = value

    @classmethod
    def from_os(cls, field: str, rule: str, path: object, error: OSError) -> "InvalidInputError":
        """Return the error for a failed file operation: ``must be writable (permission denied)``."""
        # Some libraries replace the operating system's message by their own.
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        value = path if isinstance(path, PurePath) else str(path)  # of a long path the end is shown
        return InvalidInputError(field, f"{rule} ({reason})", value)

    def within(self, parent: str) -> "InvalidInputError":
        """Return the same error of a field that is part of another one.

        Examples
        --------
        >>> print(InvalidInputError("reward", "must be a number from 0 to 1", 2).within("feedback[3]"))
        feedback[3].reward must be a number from 0 to 1, got 2
        """
        return InvalidInputError(f"{parent}.{self.field}", self.rule, self.value)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.rule, self.value)


class UnknownNameError(InvalidInputError):
    """A name is not one of the known names; the message suggests the closest one of several.

    Examples
    --------
    >>> print(UnknownNameError("policy", "ucb-rang", ["greedy-rank", "ucb-rank"]))
    policy must be one of greedy-rank, ucb-rank (did you mean ucb-rank?), got 'ucb-rang'
    >>> print(UnknownNameError("user_type", "everyone", ["everybody"]))
    user_type must be everybody, got 'everyone'
    """

    def __init__(self, field: str, name: object, known: Iterable[str]) -> None:
        self.known = tuple(known)
        names = list_names(self.known, _MAX_LISTED)
        rule = (
            f"must be {names}"
            if len(self.known) == 1
            else f"must be one of {names}{_suggestion(name, self.known)}"
        )
        super().__init__(field, rule, name)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.value, self.known)


class UnknownFieldError(UnknownNameError):
    """A body or a definition has no field of this name; the message suggests the closest one.

    Parameters
    ----------
    field
        The unknown field, with the fields that it is part of: ``feedback[3].rewrad``.
    known
        Names of the known fields.

    Examples
    --------
    >>> print(UnknownFieldError("feedback[3].rewrad", ["ranking", "clicked", "reward"]))
    feedback[3].rewrad is not a field, must be one of ranking, clicked, reward (did you mean reward?)
    """

    def __init__(self, field: str, known: Iterable[str]) -> None:
        super().__init__(field, field.rpartition(".")[2], known)
        self.args = (f"{field} is not a field, {self.rule}",)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.known)


class UnknownSurfaceError(UnknownNameError):
    """The store has no surface of this name; the message suggests the closest one.

    Examples
    --------
    >>> print(UnknownSurfaceError("surface", "hoome", ["home", "search"]))
    surface 'hoome' does not exist (did you mean home?)
    """

    def __init__(self, field: str, name: object, known: Iterable[str]) -> None:
        super().__init__(field, name, known)
        self.args = (f"{field} {_shorten(name)} does not exist{_suggestion(name, self.known)}",)


class AlreadyExistsError(InvalidInputError):
    """The name is already in use.

    Examples
    --------
    >>> print(AlreadyExistsError("surface", "home"))
    surface 'home' already exists
    """

    def __init__(self, field: str, name: str) -> None:
        super().__init__(field, "must not exist already", name)
        self.args = (f"{field} {_shorten(name)} already exists",)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.value)


class NoExperimentError(BanditRankError):
    """The surface has no experiment.

    Parameters
    ----------
    surface
        Name of the surface.

    Examples
    --------
    >>> print(NoExperimentError("home"))
    surface 'home' has no experiment
    """

    def __init__(self, surface: str) -> None:
        super().__init__(f"surface {surface!r} has no experiment")
        self.surface = surface

    def __reduce__(self) -> tuple[type["NoExperimentError"], tuple[str]]:
        return type(self), (self.surface,)


class UnsolvableError(BanditRankError):
    """The solver does not support the utility or the size of the problem, or is not installed."""


class PrunedError(BanditRankError):
    """The data was pruned at the end of its retention."""


class FeedbackError(BanditRankError):
    """The feedback was rejected and not counted."""


class UnknownRankingError(FeedbackError):
    """The ranking id is unknown, or its surface was deleted."""


class ExpiredRankingError(FeedbackError):
    """The ranking's attribution window is closed."""


class ConflictingFeedbackError(FeedbackError):
    """Different feedback was reported for the ranking before."""


class MissingDependencyError(BanditRankError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    purpose
        What the packages are required for.
    packages
        Names of the missing packages.
    extras
        Extras of banditrank that install them.

    Examples
    --------
    >>> print(MissingDependencyError("plotting", ["matplotlib"], ["plots"]))
    matplotlib is required for plotting: pip install 'banditrank[plots]'
    """

    def __init__(self, purpose: str, packages: Sequence[str], extras: Sequence[str]) -> None:
        missing = list_names(packages, len(packages), last=" and ")
        is_are = "is" if len(packages) == 1 else "are"
        install = f"pip install 'banditrank[{','.join(extras)}]'"
        super().__init__(f"{missing} {is_are} required for {purpose}: {install}")


class CompilingError(BanditRankError):
    """The surface is not loaded yet, because code is being compiled; the operation may be retried.

    Examples
    --------
    >>> print(CompilingError("home"))
    surface 'home' is not loaded yet: code is being compiled
    """

    def __init__(self, surface: str) -> None:
        super().__init__(f"surface {_shorten(surface)} is not loaded yet: code is being compiled")
        self.surface = surface

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.surface,)


class ServiceError(BanditRankError):
    """The service refused a request, or could not be reached.

    Attributes
    ----------
    status
        HTTP status; None without a response.
    error_type
        Type of the error, such as ``unknown-surface``; None if the response has none.
    request_id
        Id of the request in the log of the service; None if the response has none.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        error_type: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.request_id = request_id


class StoreError(BanditRankError):
    """The store cannot be used: it is not a banditrank store, or was written by a newer version."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached, is full or too slow; the operation was atomic and may be retried."""


def one_line(text: object) -> str:
    r"""Return the text of an object with all whitespace, line breaks included, collapsed to spaces.

    Examples
    --------
    >>> one_line(ValueError("no number\n  in line 3"))
    'no number in line 3'
    """
    return " ".join(str(text).split())


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an exception in one line.

    Examples
    --------
    >>> describe_error(KeyError("name"))
    "KeyError: 'name'"
    """
    return f"{type(error).__name__}: {one_line(error)}"


def _suggestion(name: object, known: Sequence[str]) -> str:
    compared = {one[:_MAX_COMPARED_LENGTH]: one for one in known[:_MAX_COMPARED]}
    nearest = get_close_matches(str(name)[:_MAX_COMPARED_LENGTH], compared, n=1, cutoff=0.5)
    return f" (did you mean {shorten(compared[nearest[0]])}?)" if nearest else ""


def _shorten(value: object) -> str:
    if isinstance(value, PurePath):  # the end of a long path names the file
        text = one_line(repr(str(value)))
        return text if len(text) <= MAX_LENGTH else f"'…{text[2 - MAX_LENGTH :]}"
    return shorten(one_line(repr(value)))
