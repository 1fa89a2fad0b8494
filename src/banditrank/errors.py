"""What can go wrong, and how it is said.

::

    BanditRankError            everything this package raises on purpose
    ├── InvalidInputError      a value breaks a rule (also a ValueError)
    │   ├── UnknownNameError   a name that is not in a list (suggests the nearest)
    │   │   └── UnknownSurfaceError     a name that no surface of the store has
    │   └── NameTakenError     a name that something else has already
    ├── UnsolvableError        the problem is too large for the method that was asked for
    ├── ForgottenError         what is asked for was known, and was thrown away in time
    ├── FeedbackError          feedback that cannot be counted
    │   ├── UnknownRankingError     for a ranking that was not given out here, or whose surface is gone
    │   ├── LapsedRankingError      after the ranking's attribution window closed
    │   └── ContradictionError      other than what was counted for the ranking before
    └── StoreError             a store cannot be used as it is
        └── StoreUnavailableError   it cannot be reached, is full or too slow: trying again may help

Every message is one line that names the field, the rule and the value received.
"""

import os
from collections.abc import Iterable
from difflib import get_close_matches


class BanditRankError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidInputError(BanditRankError, ValueError):
    """A value breaks a rule.

    Parameters
    ----------
    field
        What was given, in the user's words: ``arrival_rates``, ``--horizon``.
    rule
        What it must be: ``must sum to 1``.
    value
        What was received.

    Examples
    --------
    >>> print(InvalidInputError("horizon", "must be at least 1", 0))
    horizon must be at least 1, got 0
    """

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {_shorten(value)}")
        self.field = field
        self.rule = rule
        self.value = value

    @classmethod
    def from_os(cls, field: str, rule: str, path: object, error: OSError) -> "InvalidInputError":
        """Return the error for a file that the system refuses: ``must be writable (permission denied)``."""
        # Some libraries put a text of their own where the system's belongs.
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
        return InvalidInputError(field, f"{rule} ({reason})", str(path))

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.rule, self.value)


class UnknownNameError(InvalidInputError):
    """A name that is not among the known ones.

    Examples
    --------
    >>> print(UnknownNameError("policy", "ucb-rang", ["greedy-rank", "ucb-rank"]))
    policy must be one of greedy-rank, ucb-rank (did you mean ucb-rank?), got 'ucb-rang'
    """

    def __init__(self, field: str, name: object, known: Iterable[str]) -> None:
        self.known = tuple(known)
        nearest = get_close_matches(str(name), self.known, n=1, cutoff=0.5)
        hint = f" (did you mean {nearest[0]}?)" if nearest else ""
        super().__init__(field, f"must be one of {', '.join(self.known)}{hint}", name)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.value, self.known)


class UnknownSurfaceError(UnknownNameError):
    """A name that no surface of the store has."""


class AlreadyExistsError(InvalidInputError):
    """A name that something else has already.

    Examples
    --------
    >>> print(AlreadyExistsError("surface", "home"))
    surface must have a name that is not taken, got 'home'
    """

    def __init__(self, field: str, name: str) -> None:
        super().__init__(field, "must have a name that is not taken", name)

    def __reduce__(self) -> tuple[type[BanditRankError], tuple[object, ...]]:
        return type(self), (self.field, self.value)


class UnsolvableError(BanditRankError):
    """The problem is larger than the method that was asked for can solve."""


class PurgedError(BanditRankError):
    """What is asked for was known once, and was thrown away when it was old."""


class FeedbackError(BanditRankError):
    """Feedback that cannot be counted. Nothing was changed."""


class UnknownRankingError(FeedbackError):
    """Feedback for a ranking that was not given out here, or whose surface is gone."""


class ExpiredRankingError(FeedbackError):
    """Feedback that came after the ranking's attribution window closed."""


class ConflictingFeedbackError(FeedbackError):
    """Feedback that differs from what was counted for the same ranking before."""


class StoreError(BanditRankError):
    """A store cannot be used as it is: it is no store of ours, or of a newer version."""


class StoreUnavailableError(StoreError):
    """A store cannot be reached, is full or too slow. Nothing, or all of it, was done: try again."""


def one_line(text: object) -> str:
    r"""Return a text of several lines as one.

    Examples
    --------
    >>> one_line(ValueError("no number\n  in line 3"))
    'no number in line 3'
    """
    return " ".join(str(text).split())


def describe_error(error: BaseException) -> str:
    """Return what an error says and of which kind it is, in a line.

    Examples
    --------
    >>> describe_error(KeyError("name"))
    "KeyError: 'name'"
    """
    return f"{type(error).__name__}: {one_line(error)}"


def _shorten(value: object, limit: int = 80) -> str:
    text = one_line(repr(value))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
