"""HTTP transport of the demo's users: a few keep-alive connections.

httpx's own connection pool inspects every connection for each request, which takes longer than the service's
response.
"""

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

import httpx

_MAX_IDLE_SECONDS = 2.0  # less than the service's own timeout for idle connections
_Connection = tuple[StreamReader, StreamWriter]


class KeepAliveTransport(httpx.AsyncBaseTransport):
    """Transport to one service that reuses idle connections, one request at a time on each."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, _Connection]] = []  # most recently used last

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read its response, which must have a content length.

        Raises
        ------
        httpx.ReadTimeout
            If there is no response within the timeout.
        httpx.ConnectError, httpx.ReadError
            If the service cannot be reached, or closes the connection.
        """
        timeout_seconds = request.extensions["timeout"]["read"]  # None for no timeout
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._send(request)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no response within {timeout_seconds:g} s", request=request) from error

    async def _send(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        try:
            reader, writer = await self._connection(request.url)
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        try:
            writer.write(_encode_head(request) + body)
            status, headers = _parse_head(await reader.readuntil(b"\r\n\r\n"))
            content = await reader.readexactly(int(headers.get("content-length", 0)))
        except BaseException as error:
            writer.close()
            if isinstance(error, OSError | EOFError):
                raise httpx.ReadError("the connection was closed", request=request) from error
            raise
        self._idle.append((time.monotonic(), (reader, writer)))
        return httpx.Response(status, headers=headers, content=content, request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        while self._idle:
            _, (_, writer) = self._idle.pop()
            writer.close()
            with suppress(OSError):  # the service may have closed it already
                await writer.wait_closed()

    async def _connection(self, url: httpx.URL) -> _Connection:
        while self._idle:
            used_at, (reader, writer) = self._idle.pop()
            if time.monotonic() - used_at < _MAX_IDLE_SECONDS and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(url.host, url.port)


def _encode_head(request: httpx.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    status, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = (line.partition(":") for line in lines)
    return int(status.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in headers}
