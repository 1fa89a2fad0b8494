"""Streaming responses, and the limit on how many are open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from banditrank.service._http import (
    NO_STORE,
    REQUEST_ID,
    Headers,
    Receive,
    Response,
    Send,
    wait_for_disconnect,
)
from banditrank.service._http_errors import TOO_MANY_STREAMS, HttpError

_LAST_CHUNK_TIMEOUT_SECONDS = 1.0


class StreamLimiter:
    """Limit on the number of open streams: each holds a connection and costs work every few seconds.

    Parameters
    ----------
    max_streams
        Maximum number of open streams.

    Attributes
    ----------
    n_open
        Number of open streams.
    """

    def __init__(self, max_streams: int) -> None:
        self._max_streams = max_streams
        self.n_open = 0

    def acquire(self) -> None:
        """Count a stream that opens.

        Raises
        ------
        HttpError
            A 503 if the maximum number of streams is open.
        """
        if self.n_open >= self._max_streams:
            raise HttpError(TOO_MANY_STREAMS, f"the maximum of {self._max_streams} streams is open")
        self.n_open += 1

    def release(self) -> None:
        """Count a stream that closed."""
        self.n_open -= 1


@dataclass(frozen=True, slots=True)
class StreamingResponse:
    """A response whose body is sent in chunks as they become available.

    Attributes
    ----------
    status, content_type, headers
        As in `Response`.
    chunks
        Body.
    on_close
        Called once when the response ends, for any reason.
    timeout_seconds
        Maximum duration; a client that does not read would otherwise hold the stream open.
    """

    status: int
    chunks: AsyncIterator[bytes]
    content_type: bytes
    on_close: Callable[[], None]
    timeout_seconds: float
    headers: Headers = ()

    def head(self) -> Response:
        """Return the response to a HEAD request, and close the stream."""
        self.on_close()
        return Response(self.status, b"", headers=(*self.headers, (b"content-type", self.content_type)))

    async def send(self, send: Send, receive: Receive, stopping: asyncio.Event, request_id: str) -> None:
        """Send chunks until they end, the client disconnects, the service stops or the timeout expires."""
        id_header = (REQUEST_ID, request_id.encode("ascii"))
        headers = [id_header, *self.headers, *NO_STORE, (b"content-type", self.content_type)]
        tasks = []
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            coroutines = (self._send_chunks(send), wait_for_disconnect(receive), _wait_for(stopping))
            tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
            await asyncio.wait(tasks, timeout=self.timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.on_close()
        if not tasks[0].cancelled():
            tasks[0].result()  # raises the error of the chunks
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_CHUNK_TIMEOUT_SECONDS):
                await send({"type": "http.response.body", "body": b""})

    async def _send_chunks(self, send: Send) -> None:
        async for chunk in self.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
