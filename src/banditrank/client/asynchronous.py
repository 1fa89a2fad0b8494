"""A client of the ranking service, for programs with an event loop."""

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from banditrank.checks import check_integer
from banditrank.client import calls
from banditrank.client.attempts import MOST_RETRIES, Attempts
from banditrank.client.calls import DEFAULT_ADDRESS, Call, ShownRanking

T = TypeVar("T")


class AsyncClient:
    """Asks the service, and asks again where that is safe.

    Parameters
    ----------
    address
        The service's.
    key
        An API key, if the service demands one.
    timeout
        Seconds to wait for an answer; for that to creating or changing a surface two minutes at least, since
        what is new to the service's machine is compiled first.
    retries
        How often to try again.
    transport
        How requests travel; over the network, if left out.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        key: str | None = None,
        timeout: float = 5.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout = timeout
        self._retries = check_integer("retries", retries, 0, MOST_RETRIES)
        self._http = httpx.AsyncClient(base_url=address, headers=calls.headers_with(key), transport=transport)

    async def rank(self, surface: str, user_type: str) -> ShownRanking:
        """Return what to show to a user of a type."""
        return await self._send(calls.rank(surface, user_type))

    async def rank_batch(self, surface: str, user_types: Iterable[str]) -> list[ShownRanking]:
        """Return a ranking for a user of each type, in one request."""
        return await self._send(calls.rank_batch(surface, user_types))

    async def feedback(self, ranking: str, *, clicked: str | None = None, reward: float = 1.0) -> str:
        """Count what became of a ranking; return ``counted``, or ``repeated`` if that was known."""
        return await self._send(calls.feedback(ranking, clicked, reward))

    async def feedback_batch(self, feedback: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Count what became of several rankings; return what became of each."""
        return await self._send(calls.feedback_batch(feedback))

    async def surfaces(self) -> list[dict[str, Any]]:
        """Return all surfaces."""
        return await self._send(calls.surfaces())

    async def surface(self, name: str) -> dict[str, Any]:
        """Return a surface."""
        return await self._send(calls.surface(name))

    async def create_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a surface."""
        return await self._send(calls.create_surface(name, settings))

    async def change_surface(self, name: str, **settings: Any) -> dict[str, Any]:
        """Change settings of a surface."""
        return await self._send(calls.change_surface(name, settings))

    async def delete_surface(self, name: str) -> None:
        """Delete a surface and all that was learned."""
        await self._send(calls.delete_surface(name))

    async def add_items(self, surface: str, items: Iterable[str]) -> dict[str, Any]:
        """Show items from now on."""
        return await self._send(calls.add_items(surface, items))

    async def retire_item(self, surface: str, item: str) -> dict[str, Any]:
        """Show an item no more."""
        return await self._send(calls.retire_item(surface, item))

    async def estimates(self, surface: str, *, level: float = 0.95) -> dict[str, Any]:
        """Return what was learned, with intervals."""
        return await self._send(calls.estimates(surface, level))

    async def equality(self, surface: str) -> dict[str, Any]:
        """Return what treating everyone equally costs."""
        return await self._send(calls.equality(surface))

    async def dashboard(self, surface: str) -> dict[str, Any]:
        """Return what the surface's page shows."""
        return await self._send(calls.dashboard(surface))

    async def explain(self, ranking: str) -> dict[str, Any]:
        """Return why a ranking was made as it was."""
        return await self._send(calls.explain(ranking))

    async def aclose(self) -> None:
        """Let go of all connections."""
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

    async def _send(self, call: Call[T]) -> T:
        attempts = Attempts(call, self._retries)
        timeout = httpx.Timeout(self._timeout, read=max(self._timeout, call.seconds))
        while True:
            try:
                response = await self._http.request(
                    call.method, call.path, json=call.body, params=call.query, timeout=timeout
                )
            except httpx.TransportError as error:
                wait = attempts.wait_after_failing(error)
            else:
                if response.is_success:
                    return call.read(response.json() if response.content else None)
                wait = attempts.wait_after_refusal(response)
            await asyncio.sleep(wait)
