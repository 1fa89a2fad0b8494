"""Asynchronous client of the ranking service."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from banditrank._checks import check_integer, check_number
from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.client import _calls as calls
from banditrank.client._calls import DEFAULT_URL, ApiCall
from banditrank.client._default_rankings import IGNORED, DefaultRankings, check_default_order
from banditrank.client._retries import MAX_RETRIES, Retries, parse_response
from banditrank.errors import ServiceError

T = TypeVar("T")


class AsyncClient:
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
    default_order
        Items to show when the service is away and no ranking is known. By default `rank` and `rank_batch`
        raise an error instead.
    rank_timeout_seconds
        Time limit of `rank` and `rank_batch` with a default order, including retries.
    transport
        Transport of the HTTP client; over the network by default.

    Raises
    ------
    InvalidInputError
        If the URL or the default order is invalid, or `max_retries` or `rank_timeout_seconds` is out of
        range.
    ServiceError
        Raised by all methods, if the service refuses a request or cannot be reached.

    Examples
    --------
    >>> def handle(request: httpx.Request) -> httpx.Response:
    ...     return httpx.Response(200, json={"status": "counted"})
    >>> async def send() -> str:
    ...     async with AsyncClient(transport=httpx.MockTransport(handle)) as client:
    ...         return await client.feedback("id", clicked="ad-1")
    >>> asyncio.run(send())
    'counted'
    """

    def __init__(
        self,
        base_url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 5.0,
        max_retries: int = 3,
        default_order: Sequence[str] | None = None,
        rank_timeout_seconds: float = 1.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._max_retries = check_integer("max_retries", max_retries, 0, MAX_RETRIES)
        self._default_order = check_default_order(default_order)
        self._rank_timeout_seconds = check_number("rank_timeout_seconds", rank_timeout_seconds, 0.001, 3600.0)
        self._default_rankings = DefaultRankings()
        headers = calls.auth_headers(api_key)
        url = calls.check_base_url(base_url)
        self._http = httpx.AsyncClient(base_url=url, headers=headers, transport=transport)

    async def rank(
        self,
        surface: str,
        user_type: str,
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        default_order: Sequence[str] | None = None,
        visitor: str | None = None,
    ) -> ShownRanking:
        """Return a ranking for a user of a type: the policy's best of the candidates.

        Parameters
        ----------
        surface
            Name of the surface.
        user_type
            User type of the user.
        candidates
            Items that may be shown; all active items by default. Retired and unknown ones are ignored, and
            named in the ranking.
        exclude
            Items that must not be shown; retired and unknown ones are ignored likewise.
        pinned
            Items that must be shown, by position: 1 is the first. They need not be candidates.
        default_order
            Items to show when the service is away and no ranking is known; those of the client by default.
        visitor
            Id of the visitor, up to 200 characters, who stays in the same arm of an experiment; by default
            the arm is chosen by chance.

        Returns
        -------
        ShownRanking
            A ranking of the service. With a default order, and if the service is away, too slow or responds
            with 5xx, 408 or 429: the last ranking for this surface and user type, or else the default order,
            with `is_default` and without an id.

        Raises
        ------
        InvalidInputError
            If the default order is invalid.
        ServiceError
            If the service refuses the request, or is away and there is no default order.
        """
        call = calls.rank(
            surface, user_type, candidates=candidates, exclude=exclude, pinned=pinned, visitor=visitor
        )
        (ranking,) = await self._rank(call, surface, [user_type], default_order)
        return ranking

    async def rank_batch(
        self,
        surface: str,
        user_types: Iterable[str],
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        default_order: Sequence[str] | None = None,
        visitors: Sequence[str | None] | None = None,
    ) -> list[ShownRanking]:
        """Return a ranking for a user of each type, in one request; with a default order, like `rank`.

        Parameters
        ----------
        surface
            Name of the surface.
        user_types
            User type of each user.
        candidates, exclude, pinned, default_order
            As for `rank`, for all users.
        visitors
            Id of each visitor, or None, as for `rank`.
        """
        user_types = list(user_types)
        call = calls.rank_batch(
            surface, user_types, candidates=candidates, exclude=exclude, pinned=pinned, visitors=visitors
        )
        return await self._rank(call, surface, user_types, default_order)

    async def feedback(
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
        ranking_id
            Id of the ranking; nothing is sent for the empty id of a default ranking.
        clicked, reward, final
            As for `Feedback`.

        Returns
        -------
        str
            ``counted``; ``recorded`` if the ranking is counted later; ``repeated`` if the feedback adds
            nothing; or ``ignored`` for a default ranking.

        Raises
        ------
        UnknownRankingError
            If the id is unknown.
        ExpiredRankingError
            If the attribution window has closed.
        ConflictingFeedbackError
            If different feedback was reported before.
        """
        if not ranking_id:
            return IGNORED
        return await self._send(calls.feedback(Feedback(ranking_id, clicked, reward, final)))

    async def feedback_batch(self, feedback: Iterable[Feedback]) -> list[str | Exception]:
        """Count the feedback for several rankings, and wait until that is durable.

        Returns
        -------
        list of str or Exception
            ``counted``, ``recorded``, ``repeated``, ``ignored`` or the error that rejected it, for each
            feedback in order.
        """
        call = calls.feedback_batch(feedback)
        return await self._send(call) if call.body["feedback"] else call.parse({"results": []})

    async def surfaces(self) -> list[dict[str, Any]]:
        """Return all surfaces that the key covers."""
        return await self._send(calls.surfaces())

    async def surface(self, name: str) -> dict[str, Any]:
        """Return a surface."""
        return await self._send(calls.surface(name))

    async def create_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a surface, and return it."""
        return await self._send(calls.create_surface(name, settings))

    async def update_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Update settings of a surface, and return it."""
        return await self._send(calls.update_surface(name, settings))

    async def delete_surface(self, name: str) -> None:
        """Delete a surface and its counts."""
        await self._send(calls.delete_surface(name))

    async def add_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Add new or retired items to a surface, and return it with its ``changes``; active items stay."""
        return await self._send(calls.add_items(surface, items))

    async def retire_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Retire items of a surface with one request per item, and return the surface.

        Raises
        ------
        InvalidInputError
            If there is no item.
        """
        return [await self._send(call) for call in calls.retire_items(surface, items)][-1]

    async def sync_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Make these items, and no others, the active ones, and return the surface with its ``changes``.

        Items are added, revived and retired in one step. The same items again change nothing.
        """
        return await self._send(calls.sync_items(surface, items))

    async def estimates(self, surface: str, *, level: float = 0.95) -> dict[str, Any]:
        """Return the estimated position preferences and item means, with intervals at a level."""
        return await self._send(calls.estimates(surface, level))

    async def equality(self, surface: str) -> dict[str, Any]:
        """Return the value of personalized and equal treatment for each user type."""
        return await self._send(calls.equality(surface))

    async def experiment(self, surface: str) -> dict[str, Any]:
        """Return the results of the surface's experiment.

        Raises
        ------
        ServiceError
            With status 404 and error type ``no-experiment`` if the surface has none.
        """
        return await self._send(calls.experiment(surface))

    async def dashboard(self, surface: str) -> dict[str, Any]:
        """Return the dashboard document of a surface."""
        return await self._send(calls.dashboard(surface))

    async def explain(self, ranking_id: str) -> dict[str, Any]:
        """Return the explanation of a ranking."""
        return await self._send(calls.explain(ranking_id))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _rank(
        self,
        call: ApiCall[list[ShownRanking]],
        surface: str,
        user_types: Sequence[str],
        default_order: Sequence[str] | None,
    ) -> list[ShownRanking]:
        order = self._default_order if default_order is None else check_default_order(default_order)
        if order is None:
            rankings = await self._send(call)
        else:
            limit = self._rank_timeout_seconds
            try:
                rankings = await asyncio.wait_for(self._send(call, limit), limit)
            except (ServiceError, TimeoutError) as error:
                return self._default_rankings.make(surface, user_types, order, call.body, error)
        self._default_rankings.remember(surface, user_types, rankings, call.body)
        return rankings

    async def _send(self, call: ApiCall[T], time_limit_seconds: float | None = None) -> T:
        retries = Retries(call, self._max_retries, time_limit_seconds)
        while True:
            try:
                response = await self._request(call, retries)
            except httpx.RequestError as error:
                delay = retries.delay_after_error(error)
            else:
                if response.is_success:
                    return parse_response(call, response)
                delay = retries.delay_after_response(response)
            await asyncio.sleep(delay)

    async def _request(self, call: ApiCall[Any], retries: Retries) -> httpx.Response:
        """Return the response to one attempt."""
        timeout = retries.timeout(self._timeout_seconds)
        async with self._http.stream(
            call.method, call.path, json=call.body, params=call.query, timeout=timeout
        ) as response:
            body = bytearray()
            async for part in response.aiter_bytes():  # timeouts apply to each part: a body may have no end
                retries.check_deadline(response)
                body += part
        kept = ("content-type", "retry-after")
        headers = {name: response.headers[name] for name in kept if name in response.headers}
        return httpx.Response(response.status_code, headers=headers, content=bytes(body))
