"""Retries with exponential backoff."""

import random
import time
from typing import Any, TypeVar

import httpx

from banditrank.client._calls import ApiCall
from banditrank.client._errors import response_error
from banditrank.errors import BanditRankError, ServiceError

T = TypeVar("T")

_TRANSIENT_STATUSES = (429, 502, 503, 504)
MAX_RETRIES = 100
"""Maximum of the clients' parameter `max_retries`."""

_INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS = 0.1, 5.0


class Retries:
    """The retries of one API call.

    Parameters
    ----------
    call
        The API call.
    max_retries
        Maximum number of retries.
    time_limit_seconds
        Time limit of all attempts together; none by default.
    """

    def __init__(self, call: ApiCall[Any], max_retries: int, time_limit_seconds: float | None = None) -> None:
        self._call = call
        self._left = max_retries
        self._made = 0
        self._deadline = float("inf") if time_limit_seconds is None else time.monotonic() + time_limit_seconds

    def timeout(self, timeout_seconds: float) -> httpx.Timeout:
        """Return the timeouts of the next attempt, from the timeout of the client."""
        remaining = max(self._deadline - time.monotonic(), 0.001)
        read = max(timeout_seconds, self._call.min_timeout_seconds)
        return httpx.Timeout(min(timeout_seconds, remaining), read=min(read, remaining))

    def check_deadline(self, response: httpx.Response) -> None:
        """Stop reading a response after the time limit of all attempts.

        Raises
        ------
        httpx.ReadTimeout
            If the time limit is over.
        """
        if time.monotonic() >= self._deadline:
            raise httpx.ReadTimeout("the response did not end in time", request=response.request)

    def delay_after_error(self, error: httpx.RequestError) -> float:
        """Return the seconds to wait before the next attempt after a request without a response.

        Raises
        ------
        ServiceError
            If there is no next attempt.
        """
        may_have_arrived = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if may_have_arrived and not self._call.is_retryable:
            self._left = 0
        return self._next_delay(ServiceError(f"the service cannot be reached: {error}"), cause=error)

    def delay_after_response(self, response: httpx.Response) -> float:
        """Return the seconds to wait before the next attempt after a response with an error.

        Raises
        ------
        BanditRankError
            The error of the response, if there is no next attempt.
        """
        status = response.status_code
        if status not in (_TRANSIENT_STATUSES if self._call.is_retryable else self._call.retry_statuses):
            self._left = 0
        retry_after = response.headers.get("retry-after")
        return self._next_delay(response_error(status, response.text), retry_after=retry_after)

    def _next_delay(
        self, error: BanditRankError, *, cause: Exception | None = None, retry_after: str | None = None
    ) -> float:
        delay = backoff_seconds(self._made + 1, retry_after)
        if self._left == 0 or time.monotonic() + delay >= self._deadline:
            raise error from cause
        self._left -= 1
        self._made += 1
        return delay


def parse_response(call: ApiCall[T], response: httpx.Response) -> T:
    """Return the result of a successful response.

    Raises
    ------
    ServiceError
        If the body is not that of the service, such as a page of a proxy.
    """
    try:
        return call.parse(response.json() if response.content else None)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise response_error(response.status_code, response.text) from error


def backoff_seconds(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait after a failed attempt: exponential backoff with jitter.

    Parameters
    ----------
    attempt
        Number of the failed attempt, from 1.
    retry_after
        Value of the ``retry-after`` header, a lower bound on the delay before jitter.
    """
    delay = min(_INITIAL_BACKOFF_SECONDS * 2.0 ** (attempt - 1), _MAX_BACKOFF_SECONDS)
    if retry_after is not None and retry_after.isdecimal():
        delay = max(delay, min(float(retry_after), _MAX_BACKOFF_SECONDS))
    return delay * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, so that clients do not retry in step
