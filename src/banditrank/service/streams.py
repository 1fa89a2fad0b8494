"""Responses that go on: parts are sent as they come, until the client leaves or the service stops."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from banditrank.service.http import ALWAYS, REQUEST_ID, Headers, Receive, Response, Send
from banditrank.service.http_errors import TOO_MANY_STREAMS, HttpError

_LAST_SECONDS = 1.0  # for the end of a stream to be sent


class StreamLimiter:
    """How many streams there are; each holds a connection, and is worked for every few seconds.

    Parameters
    ----------
    most
        There may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.number = 0

    def add(self) -> None:
        """Count one more, or raise a problem if there are as many as there may be."""
        if self.number >= self._most:
            raise HttpError(TOO_MANY_STREAMS, f"{self._most} streams are open, as many as there may be")
        self.number += 1

    def remove(self) -> None:
        """Count one less."""
        self.number -= 1


@dataclass(frozen=True, slots=True)
class StreamingResponse:
    """A response that goes on.

    Attributes
    ----------
    status, content_type, headers
        As of any response.
    parts
        What is sent, as it comes.
    ended
        Called once, whatever it ends by.
    seconds
        After which it is ended in any case: a client that does not read holds up what is sent.
    """

    status: int
    parts: AsyncIterator[bytes]
    content_type: bytes
    ended: Callable[[], None]
    seconds: float
    headers: Headers = ()

    def head(self) -> Response:
        """Return the response to a HEAD request: no part is sent."""
        self.ended()
        return Response(self.status, b"", headers=(*self.headers, (b"content-type", self.content_type)))

    async def send(self, send: Send, receive: Receive, stopping: asyncio.Event, request_id: str) -> None:
        """Send parts until there are no more, the client is gone, or the service stops."""
        named = (REQUEST_ID, request_id.encode("ascii"))
        headers = [named, *self.headers, *ALWAYS, (b"content-type", self.content_type)]
        tasks = []
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            tasks = [asyncio.create_task(work) for work in (self._feed(send), _gone(receive), _set(stopping))]
            await asyncio.wait(tasks, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.ended()
        if not tasks[0].cancelled():
            tasks[0].result()  # raises what it failed with
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await send({"type": "http.response.body", "body": b""})

    async def _feed(self, send: Send) -> None:
        async for part in self.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _set(event: asyncio.Event) -> None:
    await event.wait()
