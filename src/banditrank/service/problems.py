"""Errors as RFC 9457 problem documents: what went wrong, in a form that programs can tell apart."""

from dataclasses import dataclass

import msgspec

from banditrank.errors import (
    BanditRankError,
    ContradictionError,
    ForgottenError,
    InvalidInputError,
    LapsedRankingError,
    NameTakenError,
    StoreError,
    StoreUnavailableError,
    UnknownRankingError,
    UnknownSurfaceError,
    UnsolvableError,
)
from banditrank.service.messages import Headers, Response
from banditrank.service.models import ProblemDocument

CONTENT_TYPE = b"application/problem+json"
_RETRY_SECONDS = b"1"
_SAID_OF_MISTAKES = (
    "It was logged. Send feedback again: it counts once; of anything else look whether it was done"
)


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its name is stable, its title is for people."""

    name: str
    status: int
    title: str

    @property
    def type(self) -> str:
        """What tells this kind from others in a document."""
        return f"urn:banditrank:problem:{self.name}"


MALFORMED = Kind("malformed", 400, "The body is not valid JSON")
NO_KEY = Kind("no-key", 401, "A valid API key is needed")
NO_RIGHT = Kind("no-right", 403, "The API key does not have this right")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
UNKNOWN_SURFACE = Kind("unknown-surface", 404, "There is no such surface")
UNKNOWN_RANKING = Kind("unknown-ranking", 404, "There is no such ranking")
WRONG_METHOD = Kind("wrong-method", 405, "This cannot be done here")
TOO_SLOW = Kind("too-slow", 408, "The body did not arrive in time")
NAME_TAKEN = Kind("name-taken", 409, "The name is taken")
CONTRADICTION = Kind("contradiction", 409, "Another feedback was counted before")
FORGOTTEN = Kind("forgotten", 410, "It was thrown away since")
LAPSED = Kind("lapsed", 410, "The attribution window has closed")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_CONTENT_TYPE = Kind("wrong-content-type", 415, "The body must be JSON")
WRONG_HOST = Kind("wrong-host", 421, "The service cannot be asked by this name")
INVALID = Kind("invalid", 422, "A value breaks a rule")
INTERNAL = Kind("internal", 500, "The service made a mistake")
UNAVAILABLE = Kind("unavailable", 503, "The store cannot be used at present")
TOO_MANY_STREAMS = Kind("too-many-streams", 503, "As many streams are open as there may be")

_KINDS: tuple[tuple[type[BanditRankError], Kind], ...] = (
    (NameTakenError, NAME_TAKEN),
    (UnknownSurfaceError, UNKNOWN_SURFACE),
    (InvalidInputError, INVALID),
    (UnsolvableError, INVALID),
    (UnknownRankingError, UNKNOWN_RANKING),
    (LapsedRankingError, LAPSED),
    (ForgottenError, FORGOTTEN),
    (ContradictionError, CONTRADICTION),
    (StoreUnavailableError, UNAVAILABLE),
    (StoreError, UNAVAILABLE),
)


class ProblemError(Exception):
    """Ends the handling of a request with a problem document."""

    def __init__(self, kind: Kind, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


def problem_of(error: Exception) -> ProblemDocument:
    """Return the problem that an error is to the caller."""
    if not isinstance(error, BanditRankError):
        return ProblemDocument(INTERNAL.type, INTERNAL.title, INTERNAL.status, _SAID_OF_MISTAKES)
    kind = next((kind for cause, kind in _KINDS if isinstance(error, cause)), INTERNAL)
    named = error.field if isinstance(error, InvalidInputError) else None
    return ProblemDocument(kind.type, kind.title, kind.status, str(error), named)


def respond_with(problem: ProblemDocument, headers: Headers = ()) -> Response:
    """Return the response that a problem is told with."""
    if problem.status == UNAVAILABLE.status:
        headers = (*headers, (b"retry-after", _RETRY_SECONDS))
    return Response(problem.status, msgspec.json.encode(problem), CONTENT_TYPE, headers)


def response_to(error: Exception) -> Response:
    """Return the response to a request that ended with an error."""
    if isinstance(error, ProblemError):
        kind = error.kind
        return respond_with(ProblemDocument(kind.type, kind.title, kind.status, error.detail), error.headers)
    return respond_with(problem_of(error))
