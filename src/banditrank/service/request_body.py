"""Bodies of requests: read within limits, and decoded as the types that operations ask for."""

import asyncio
from collections.abc import Generator, Iterable
from types import coroutine
from typing import Any, TypeVar

import msgspec

from banditrank.service.http import JSON, Receive, RequestHeaders
from banditrank.service.http_errors import (
    CLIENT_DISCONNECTED,
    INVALID,
    MALFORMED,
    TOO_LARGE,
    TOO_SLOW,
    WRONG_CONTENT_TYPE,
    HttpError,
)
from banditrank.service.routing import Route

B = TypeVar("B", bytes, bytearray)


class BodyReader:
    """Reads bodies, and raises a problem for those that cannot be.

    Parameters
    ----------
    operations
        Which ask for them.
    largest
        Bytes that a body may have.
    seconds
        Within which it must come.
    """

    def __init__(self, operations: Iterable[Route], *, largest: int, seconds: float) -> None:
        self._largest, self._seconds = largest, seconds
        self._decoders = {
            operation.name: msgspec.json.Decoder(operation.body)
            for operation in operations
            if operation.body is not None
        }

    async def read(self, headers: RequestHeaders, receive: Receive) -> bytes:
        """Return the body of a request.

        Raises
        ------
        ProblemError
            A 408 if it arrives too slowly, a 413 if it is too large, a 415 if it is not JSON.
        """
        _check_type(headers)
        receiving = receive().__await__()
        try:
            waiting = next(receiving)
        except StopIteration as received:
            message = received.value
            if message["type"] == "http.request" and _is_last(message):  # nearly always: without a timer
                return self._limited(bytes(message.get("body", b"")))
        else:
            message = None
        content = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                if message is None:
                    message = await _resume(receiving, waiting)
                while True:
                    if message["type"] == "http.disconnect":
                        raise HttpError(CLIENT_DISCONNECTED, "the client left before its body arrived")
                    content += message.get("body", b"")
                    self._limited(content)
                    if _is_last(message):
                        return bytes(content)
                    message = await receive()
        except TimeoutError:
            late = f"a body must arrive within {self._seconds:g} seconds"
            raise HttpError(TOO_SLOW, late) from None

    def _limited(self, content: B) -> B:
        if len(content) > self._largest:
            raise HttpError(TOO_LARGE, f"a body must be at most {self._largest:,} bytes")
        return content

    def decode(self, operation: Route, content: bytes) -> Any:
        """Return a body as the type that the operation declares, or raise a 400 or 422."""
        try:
            return self._decoders[operation.name].decode(content)
        except msgspec.ValidationError as error:
            raise HttpError(INVALID, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HttpError(MALFORMED, str(error)) from None
        except RecursionError:
            raise HttpError(MALFORMED, "the body is nested too deeply") from None


def _check_type(headers: RequestHeaders) -> None:
    content_type = headers.get(b"content-type", b"")
    if content_type != JSON and content_type.partition(b";")[0].strip().lower() != JSON:
        got = content_type.decode("latin-1")[:80]
        raise HttpError(WRONG_CONTENT_TYPE, f"content-type must be application/json, got {got!r}")


def _is_last(message: Any) -> bool:
    return not message.get("more_body", False)


@coroutine
def _resume(receiving: Any, waiting: Any) -> Generator[Any, Any, Any]:
    """Await what was started by hand, and yielded what it waits for."""
    yield waiting
    return (yield from receiving)
