"""How users of the demo reach the service: a few connections that are kept, and little beside them.

httpx's own way looks at every connection for each request, which takes longer than the service's answer.
"""

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

import httpx

_LONGEST_IDLE = 2.0  # seconds; the service closes connections that are idle for longer
_Connection = tuple[StreamReader, StreamWriter]


class KeptConnections(httpx.AsyncBaseTransport):
    """Carries requests to one service, each on a connection that no other request is on."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, _Connection]] = []  # the one that was used last comes last

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read its response, which must say how long it is."""
        patience = request.extensions["timeout"]["read"]  # seconds, or None for no end
        try:
            async with asyncio.timeout(patience):
                return await self._carry(request)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {patience:g} s", request=request) from error

    async def _carry(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        try:
            reader, writer = await self._connection(request.url)
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        try:
            writer.write(_head(request) + body)
            status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
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
            with suppress(OSError):  # the service was there first
                await writer.wait_closed()

    async def _connection(self, url: httpx.URL) -> _Connection:
        while self._idle:
            used, (reader, writer) = self._idle.pop()
            if time.monotonic() - used < _LONGEST_IDLE and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(url.host, url.port)


def _head(request: httpx.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _read_head(head: bytes) -> tuple[int, dict[str, str]]:
    status, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = (line.partition(":") for line in lines)
    return int(status.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in headers}
