"""When to send a request again, and what the caller is told otherwise: the same for both clients."""

import json
import random
from typing import Any

import httpx

from banditrank.client.calls import Call
from banditrank.errors import (
    BanditRankError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    UnknownRankingError,
)

_PREFIX = "urn:banditrank:problem:"
_ERRORS: dict[str, type[BanditRankError]] = {
    "contradiction": ConflictingFeedbackError,
    "lapsed": ExpiredRankingError,
    "unknown-ranking": UnknownRankingError,
}
_PASSING = (429, 502, 503, 504)  # statuses after which the same request may do better
MOST_RETRIES = 100
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds


class ServiceError(BanditRankError):
    """The service refused a request, or could not be reached.

    Attributes
    ----------
    status
        Of the response; None if there was none.
    kind
        What the problem document says of itself, such as ``unknown-surface``.
    request_id
        Id of the request, by which the service's log tells more; None if there is none.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        kind: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.request_id = request_id


class Attempts:
    """Attempts to send one request.

    Parameters
    ----------
    call
        The request.
    retries
        How often it may be sent again.
    """

    def __init__(self, call: Call[Any], retries: int) -> None:
        self._call = call
        self._left = retries
        self._made = 0

    def wait_after_failing(self, error: httpx.TransportError) -> float:
        """Return how many seconds to wait after an attempt without an answer, or raise an error."""
        arrived = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if arrived and not self._call.repeatable:
            self._left = 0
        return self._wait(ServiceError(f"the service cannot be reached: {error}"), cause=error)

    def wait_after_refusal(self, response: httpx.Response) -> float:
        """Return how many seconds to wait after an attempt that was refused, or raise an error."""
        status = response.status_code
        if status not in (_PASSING if self._call.repeatable else self._call.undone_after):
            self._left = 0
        return self._wait(_error_of(status, response.text), retry_after=response.headers.get("retry-after"))

    def _wait(
        self, error: BanditRankError, *, cause: Exception | None = None, retry_after: str | None = None
    ) -> float:
        if self._left == 0:
            raise error from cause
        self._left -= 1
        self._made += 1
        return wait_after(self._made, retry_after)


def wait_after(attempts: int, retry_after: str | None) -> float:
    """Return how many seconds to wait after so many attempts."""
    longest = min(_FIRST_WAIT * 2.0 ** (attempts - 1), _LONGEST_WAIT)
    if retry_after is not None and retry_after.isdigit():
        longest = max(longest, min(float(retry_after), _LONGEST_WAIT))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - so that clients do not come back all at once


def _error_of(status: int, text: str) -> BanditRankError:
    """Return the error that a response is."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "detail" not in document:
        return ServiceError(f"the service answered {status}: {text[:200]}", status)
    kind = str(document.get("type", "")).removeprefix(_PREFIX)
    if kind in _ERRORS:
        return _ERRORS[kind](document["detail"])
    message = f"{document.get('title')}: {document['detail']}"
    return ServiceError(message, status, kind, document.get("request_id"))
