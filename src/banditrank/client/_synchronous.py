"""Synchronous client of the ranking service."""

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from banditrank._checks import check_integer
from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.client import _calls as calls
from banditrank.client._calls import DEFAULT_URL, ApiCall
from banditrank.client._retries import MAX_RETRIES, Retries

T = TypeVar("T")


class Client:
    """A client of the ranking service that retries requests where that is safe.

    Parameters
    ----------
    base_url
        URL of the service.
    api_key
        API key, if the service requires one.
    timeout_seconds
        Timeout for a response; at least 30 seconds for reports, and two minutes for creating and updating
        surfaces, which may compile code.
    max_retries
        Maximum number of retries of a request.
    transport
        Transport of the HTTP client; over the network by default.

    Raises
    ------
    InvalidInputError
        If `max_retries` is out of range.
    ServiceError
        Raised by all methods, if the service refuses a request or cannot be reached.

    Examples
    --------
    >>> def handle(request: httpx.Request) -> httpx.Response:
    ...     return httpx.Response(200, json={"status": "counted"})
    >>> with Client(transport=httpx.MockTransport(handle)) as client:
    ...     client.feedback("id", clicked="ad-1")
    'counted'
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 5.0,
        max_retries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._max_retries = check_integer("max_retries", max_retries, 0, MAX_RETRIES)
        headers = calls.auth_headers(api_key)
        self._http = httpx.Client(base_url=base_url, headers=headers, transport=transport)

    def rank(self, surface: str, user_type: str) -> ShownRanking:
        """Return a ranking for a user of a type."""
        return self._send(calls.rank(surface, user_type))

    def rank_batch(self, surface: str, user_types: Iterable[str]) -> list[ShownRanking]:
        """Return a ranking for a user of each type, in one request."""
        return self._send(calls.rank_batch(surface, user_types))

    def feedback(
        self,
        ranking_id: str,
        *,
        clicked: str | Sequence[str] | None = None,
        reward: float = 1.0,
        final: bool | None = None,
    ) -> str:
        """Send the feedback for a ranking; it is durable when this returns.

        Parameters
        ----------
        ranking_id, clicked, reward, final
            As for `Feedback`.

        Returns
        -------
        str
            ``counted``; ``recorded`` if the ranking is counted later; or ``repeated`` if the feedback adds
            nothing.

        Raises
        ------
        UnknownRankingError
            If the id is unknown.
        ExpiredRankingError
            If the attribution window has closed.
        ConflictingFeedbackError
            If different feedback was counted before.
        """
        return self._send(calls.feedback(Feedback(ranking_id, clicked, reward, final)))

    def feedback_batch(self, feedback: Iterable[Feedback]) -> list[str | Exception]:
        """Count the feedback for several rankings, and wait until that is durable.

        Returns
        -------
        list of str or Exception
            ``counted``, ``recorded``, ``repeated`` or the error that rejected it, for each feedback in order.
        """
        return self._send(calls.feedback_batch(feedback))

    def surfaces(self) -> list[dict[str, Any]]:
        """Return all surfaces that the key covers."""
        return self._send(calls.surfaces())

    def surface(self, name: str) -> dict[str, Any]:
        """Return a surface."""
        return self._send(calls.surface(name))

    def create_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a surface, and return it."""
        return self._send(calls.create_surface(name, settings))

    def update_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Update settings of a surface, and return it."""
        return self._send(calls.update_surface(name, settings))

    def delete_surface(self, name: str) -> None:
        """Delete a surface and its counts."""
        self._send(calls.delete_surface(name))

    def add_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Add new or retired items to a surface, and return it."""
        return self._send(calls.add_items(surface, items))

    def retire_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Retire items of a surface with one request per item, and return the surface.

        Raises
        ------
        InvalidInputError
            If there is no item.
        """
        return [self._send(call) for call in calls.retire_items(surface, items)][-1]

    def estimates(self, surface: str, *, level: float = 0.95) -> dict[str, Any]:
        """Return the estimated position preferences and item means, with intervals at a level."""
        return self._send(calls.estimates(surface, level))

    def equality(self, surface: str) -> dict[str, Any]:
        """Return the value of personalized and equal treatment for each user type."""
        return self._send(calls.equality(surface))

    def dashboard(self, surface: str) -> dict[str, Any]:
        """Return the dashboard document of a surface."""
        return self._send(calls.dashboard(surface))

    def explain(self, ranking_id: str) -> dict[str, Any]:
        """Return the explanation of a ranking."""
        return self._send(calls.explain(ranking_id))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, call: ApiCall[T]) -> T:
        retries = Retries(call, self._max_retries)
        timeout = httpx.Timeout(
            self._timeout_seconds, read=max(self._timeout_seconds, call.min_timeout_seconds)
        )
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, json=call.body, params=call.query, timeout=timeout
                )
            except httpx.TransportError as error:
                delay = retries.delay_after_error(error)
            else:
                if response.is_success:
                    return call.parse(response.json() if response.content else None)
                delay = retries.delay_after_response(response)
            time.sleep(delay)
