"""HTTP errors as RFC 9457 problem details."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from banditrank.errors import (
    AlreadyExistsError,
    BanditRankError,
    CompilingError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    InvalidInputError,
    NoExperimentError,
    PrunedError,
    StoreError,
    UnknownRankingError,
    UnknownSurfaceError,
    UnsolvableError,
)
from banditrank.service._requests import JsonResponse
from banditrank.service._schemas import ProblemDetails

CONTENT_TYPE = "application/problem+json"
_RETRY_AFTER_SECONDS = "1"
# The messages of these errors name hosts, files and database drivers: they are logged, not sent.
_INTERNAL_DETAIL = "internal error; feedback is safe to repeat, other requests may have taken effect"
_UNAVAILABLE_DETAIL = (
    "the store is unavailable; feedback is safe to repeat, other requests may have taken effect"
)


@dataclass(frozen=True)
class HttpErrorType:
    """A type of HTTP error.

    Attributes
    ----------
    name
        Stable name, for programs.
    status
        HTTP status.
    title
        Short description, for people.
    """

    name: str
    status: int
    title: str

    @property
    def urn(self) -> str:
        """Value of ``type`` in the problem details."""
        return f"urn:banditrank:problem:{self.name}"


MALFORMED = HttpErrorType("malformed", 400, "The body is not valid JSON")
NO_KEY = HttpErrorType("no-key", 401, "A valid API key is required")
NO_RIGHT = HttpErrorType("no-right", 403, "The API key does not have this right")
NOT_FOUND = HttpErrorType("not-found", 404, "Not found")
UNKNOWN_SURFACE = HttpErrorType("unknown-surface", 404, "Surface not found")
NO_EXPERIMENT = HttpErrorType("no-experiment", 404, "The surface has no experiment")
UNKNOWN_RANKING = HttpErrorType("unknown-ranking", 404, "Ranking not found")
WRONG_METHOD = HttpErrorType("wrong-method", 405, "Method not allowed")
TOO_SLOW = HttpErrorType("too-slow", 408, "The body did not arrive in time")
ALREADY_EXISTS = HttpErrorType("already-exists", 409, "The name already exists")
CONFLICTING_FEEDBACK = HttpErrorType("conflicting-feedback", 409, "Different feedback was reported before")
PRUNED = HttpErrorType("pruned", 410, "The ranking was pruned")
EXPIRED = HttpErrorType("expired", 410, "The attribution window has closed")
TOO_LARGE = HttpErrorType("too-large", 413, "The body is too large")
WRONG_CONTENT_TYPE = HttpErrorType("wrong-content-type", 415, "The body must be JSON")
WRONG_HOST = HttpErrorType("wrong-host", 421, "The host is not allowed")
INVALID = HttpErrorType("invalid", 422, "Invalid value")
CLIENT_DISCONNECTED = HttpErrorType("client-disconnected", 499, "The client disconnected")
INTERNAL = HttpErrorType("internal", 500, "Internal error")
UNAVAILABLE = HttpErrorType("unavailable", 503, "The store is unavailable")
COMPILING = HttpErrorType("compiling", 503, "Code is being compiled")
OVERLOADED = HttpErrorType("overloaded", 503, "Too many requests are queued")
TOO_MANY_STREAMS = HttpErrorType("too-many-streams", 503, "Too many streams are open")

_ERROR_TYPES: tuple[tuple[type[BanditRankError], HttpErrorType], ...] = (
    (AlreadyExistsError, ALREADY_EXISTS),
    (UnknownSurfaceError, UNKNOWN_SURFACE),
    (InvalidInputError, INVALID),
    (NoExperimentError, NO_EXPERIMENT),
    (UnsolvableError, INVALID),
    (UnknownRankingError, UNKNOWN_RANKING),
    (ExpiredRankingError, EXPIRED),
    (PrunedError, PRUNED),
    (ConflictingFeedbackError, CONFLICTING_FEEDBACK),
    (CompilingError, COMPILING),
    (StoreError, UNAVAILABLE),
)


class HttpError(Exception):
    """An error that is sent to the client.

    Parameters
    ----------
    error_type
        Type of the error.
    detail
        Message for this request.
    headers
        Additional headers of the response.
    """

    def __init__(
        self, error_type: HttpErrorType, detail: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(detail)
        self.error_type = error_type
        self.detail = detail
        self.headers = headers


def problem_details(error: Exception, request_id: str) -> ProblemDetails:
    """Return the problem details of an error, without messages that are internal."""
    if isinstance(error, HttpError):
        return _details(error.error_type, error.detail, request_id)
    error_type = _error_type(error)
    if error_type is INTERNAL:
        return _details(error_type, _INTERNAL_DETAIL, request_id)
    if error_type is UNAVAILABLE:
        return _details(error_type, _UNAVAILABLE_DETAIL, request_id)
    if isinstance(error, UnknownSurfaceError):  # its message may name another surface
        return _details(error_type, f"surface {str(error.value)[:80]!r} does not exist", request_id)
    if isinstance(error, UnsolvableError):  # of a surface whose policy cannot rank it
        return _details(error_type, str(error), request_id, "policy")
    return _details(error_type, str(error), request_id, getattr(error, "field", None))


def is_internal(error: Exception) -> bool:
    """Return whether the message of an error is logged and not sent to the client."""
    return not isinstance(error, HttpError) and _error_type(error) in (INTERNAL, UNAVAILABLE)


def error_response(error: Exception, request_id: str) -> JsonResponse:
    """Return the response for an error that a handler raised."""
    details = problem_details(error, request_id)
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if details.status == UNAVAILABLE.status:
        headers["retry-after"] = _RETRY_AFTER_SECONDS
    return JsonResponse(details, details.status, headers, CONTENT_TYPE)


def _error_type(error: Exception) -> HttpErrorType:
    return next((http for python, http in _ERROR_TYPES if isinstance(error, python)), INTERNAL)


def _details(
    error_type: HttpErrorType, detail: str, request_id: str, field: str | None = None
) -> ProblemDetails:
    return ProblemDetails(error_type.urn, error_type.title, error_type.status, detail, request_id, field)
