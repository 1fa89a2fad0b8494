"""Bodies of requests: read within limits, and decoded as the types that operations ask for."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from banditrank.service.messages import JSON, RawHeaders, Receive, header
from banditrank.service.operations import Operation
from banditrank.service.problems import (
    CLIENT_DISCONNECTED,
    INVALID,
    MALFORMED,
    TOO_LARGE,
    TOO_SLOW,
    WRONG_CONTENT_TYPE,
    ProblemError,
)


class Bodies:
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

    def __init__(self, operations: Iterable[Operation], *, largest: int, seconds: float) -> None:
        self._largest, self._seconds = largest, seconds
        self._decoders = {
            operation.name: msgspec.json.Decoder(operation.body)
            for operation in operations
            if operation.body is not None
        }

    async def read(self, headers: RawHeaders, receive: Receive) -> bytes:
        """Return the body of a request, or raise a 408, 413 or 415."""
        _check_type(headers)
        content = bytearray()
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ProblemError(
                            CLIENT_DISCONNECTED, "the client disconnected before its body arrived"
                        )
                    content += message.get("body", b"")
                    if len(content) > self._largest:
                        raise ProblemError(TOO_LARGE, f"a body must be at most {self._largest:,} bytes")
                    if not message.get("more_body", False):
                        return bytes(content)
        except TimeoutError:
            late = f"a body must arrive within {self._seconds:g} seconds"
            raise ProblemError(TOO_SLOW, late) from None

    def decode(self, operation: Operation, content: bytes) -> Any:
        """Return a body as the type that the operation declares, or raise a 400 or 422."""
        try:
            return self._decoders[operation.name].decode(content)
        except msgspec.ValidationError as error:
            raise ProblemError(INVALID, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProblemError(MALFORMED, str(error)) from None
        except RecursionError:
            raise ProblemError(MALFORMED, "the body is nested too deeply") from None


def _check_type(headers: RawHeaders) -> None:
    content_type = header(headers, b"content-type") or b""
    if content_type != JSON and content_type.partition(b";")[0].strip().lower() != JSON:
        got = content_type.decode("latin-1")[:80]
        raise ProblemError(WRONG_CONTENT_TYPE, f"content-type must be application/json, got {got!r}")
