"""Middleware of the application: what is measured and limited of requests and streams."""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from banditrank.service._http_errors import (
    CLIENT_DISCONNECTED,
    TOO_MANY_STREAMS,
    HttpError,
    error_response,
)
from banditrank.service._requests import RequestInfo, info_of, note_info

if TYPE_CHECKING:
    from banditrank.service._service import Service

_REQUEST_ID = b"x-request-id"
_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._~-]{1,64}")
_STREAM_STALL_SECONDS = 30.0
_NO_STORE = (b"cache-control", b"no-store")
_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_CLOSE = (b"connection", b"close")

logger = logging.getLogger("banditrank.service")


class RequestMonitor:
    """Gives each request an id, counts and logs it, and completes the headers of its response.

    A response is not cached unless it says otherwise. While a worker drains, each response closes its
    connection. An error that nothing else handles is a 500. It is raised again for middleware around the
    application, so that servers log it a second time, without the request id.
    """

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self._app = app
        self._service = service
        self._request_ids = RequestIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        service, start = self._service, time.perf_counter()
        if not service.is_running:
            raise RuntimeError("the service does not run: the host's lifespan must contain its own")
        headers = dict(scope["headers"])
        request_id = self._request_ids.for_request(headers)
        info = RequestInfo(request_id.decode("ascii"), headers)
        note_info(scope, info)
        has_started = False

        # Recorded when the response starts: a stream may be open for hours.
        async def send_response(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                service.record_request(info, message["status"], time.perf_counter() - start)
                added = [(_REQUEST_ID, request_id), _NO_SNIFF]
                if b"cache-control" not in dict(message["headers"]):
                    added.append(_NO_STORE)
                if service.is_draining:
                    added.append(_CLOSE)
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            await self._app(scope, receive, send_response)
        except Exception as error:
            service.log_failure(info, error)
            if not has_started:
                await error_response(error, info.id)(scope, receive, send_response)
            raise


class RequestIds:
    """Generator of request ids that are unique across processes.

    Parameters
    ----------
    prefix
        Prefix of all ids; random by default.

    Examples
    --------
    >>> ids = RequestIds(b"4f0c")
    >>> ids.for_request({}), ids.for_request({})
    (b'4f0c-1', b'4f0c-2')
    >>> ids.for_request({b"x-request-id": b"proxy-7"}), ids.for_request({b"x-request-id": b"a b"})
    (b'proxy-7', b'4f0c-3')
    """

    def __init__(self, prefix: bytes | None = None) -> None:
        self._prefix = secrets.token_hex(4).encode() if prefix is None else prefix
        self._numbers = count(1)

    def for_request(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return the id that the client sent if it is valid, or a new one."""
        sent = headers.get(_REQUEST_ID)
        if sent is not None and _REQUEST_ID_PATTERN.fullmatch(sent):
            return sent
        return b"%b-%x" % (self._prefix, next(self._numbers))


class CancelOnDisconnect:
    """Cancels the application if the client disconnects before the response starts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, whose body is dropped."""
        has_started = False

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        response = asyncio.ensure_future(self._app(scope, receive, note_start))
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((response, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if not (has_started or response.done()):
                raise HttpError(CLIENT_DISCONNECTED, "the client disconnected before the response")
            await response
        finally:
            response.cancel()
            disconnect.cancel()
            await asyncio.gather(response, disconnect, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamLimits:
    """Limits the number of open streams, each of which holds a connection and costs work every few seconds.

    A stream that has not ended in time is aborted: a client that does not read would hold it open.
    """

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or raise HttpError if the maximum number of streams is open."""
        service, settings = self._service, self._service.settings
        if service.n_open_streams >= settings.max_streams:
            raise HttpError(TOO_MANY_STREAMS, f"the maximum of {settings.max_streams} streams is open")
        service.n_open_streams += 1
        timeout = asyncio.timeout(settings.max_stream_seconds + _STREAM_STALL_SECONDS)
        try:
            async with timeout:
                await self._app(scope, receive, send)
        except TimeoutError:
            if not timeout.expired():
                raise
            # The server closes the connection, as the response is incomplete.
            logger.info("stream aborted", extra={"request_id": info_of(scope).id})
        finally:
            service.n_open_streams -= 1
