"""Errors as RFC 9457 problem documents: what went wrong, in a form that programs can tell apart."""

from dataclasses import dataclass

import msgspec

from banditrank.errors import (
    AlreadyExistsError,
    BanditRankError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    InvalidInputError,
    PrunedError,
    StoreError,
    UnknownRankingError,
    UnknownSurfaceError,
    UnsolvableError,
)
from banditrank.service.messages import Headers, Response
from banditrank.service.models import ProblemDocument

CONTENT_TYPE = b"application/problem+json"
_RETRY_SECONDS = b"1"
# Details of these are for the log alone: they name hosts, files and what a database driver says.
_INTERNAL_DETAIL = "internal error; feedback is safe to repeat, other requests may have taken effect"
_UNAVAILABLE_DETAIL = (
    "the store is unavailable; feedback is safe to repeat, other requests may have taken effect"
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
CLIENT_DISCONNECTED = Kind("client-disconnected", 499, "The client disconnected")
INTERNAL = Kind("internal", 500, "The service made a mistake")
UNAVAILABLE = Kind("unavailable", 503, "The store cannot be used at present")
OVERLOADED = Kind("overloaded", 503, "Too many requests are waiting")
TOO_MANY_STREAMS = Kind("too-many-streams", 503, "As many streams are open as there may be")

_KINDS: tuple[tuple[type[BanditRankError], Kind], ...] = (
    (AlreadyExistsError, NAME_TAKEN),
    (UnknownSurfaceError, UNKNOWN_SURFACE),
    (InvalidInputError, INVALID),
    (UnsolvableError, INVALID),
    (UnknownRankingError, UNKNOWN_RANKING),
    (ExpiredRankingError, LAPSED),
    (PrunedError, FORGOTTEN),
    (ConflictingFeedbackError, CONTRADICTION),
    (StoreError, UNAVAILABLE),
)


class ProblemError(Exception):
    """Ends the handling of a request with a problem document."""

    def __init__(self, kind: Kind, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


def problem_of(error: Exception, request_id: str) -> ProblemDocument:
    """Return the problem document for an error."""
    if isinstance(error, ProblemError):
        return _document(error.kind, error.detail, request_id)
    kind = _kind_of(error)
    if kind is INTERNAL:
        return _document(kind, _INTERNAL_DETAIL, request_id)
    if kind is UNAVAILABLE:
        return _document(kind, _UNAVAILABLE_DETAIL, request_id)
    if isinstance(error, UnknownSurfaceError):  # whose message lists the surfaces there are
        return _document(kind, f"there is no surface {str(error.value)[:80]!r}", request_id)
    return _document(kind, str(error), request_id, getattr(error, "field", None))


def is_internal(error: Exception) -> bool:
    """Return whether the details of an error are kept from clients, and therefore logged."""
    return not isinstance(error, ProblemError) and _kind_of(error) in (INTERNAL, UNAVAILABLE)


def response_to(error: Exception, request_id: str) -> Response:
    """Return the response to a request that ended with an error."""
    problem = problem_of(error, request_id)
    headers = error.headers if isinstance(error, ProblemError) else ()
    if problem.status == UNAVAILABLE.status:
        headers = (*headers, (b"retry-after", _RETRY_SECONDS))
    return Response(problem.status, msgspec.json.encode(problem), CONTENT_TYPE, headers)


def _kind_of(error: Exception) -> Kind:
    return next((kind for cause, kind in _KINDS if isinstance(error, cause)), INTERNAL)


def _document(kind: Kind, detail: str, request_id: str, field: str | None = None) -> ProblemDocument:
    return ProblemDocument(kind.type, kind.title, kind.status, detail, request_id, field)
