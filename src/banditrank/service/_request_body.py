"""Reading and decoding of request bodies."""

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from banditrank.service._body_validation import body_error
from banditrank.service._http import JSON, Receive, RequestHeaders, receive_now
from banditrank.service._http_errors import (
    CLIENT_DISCONNECTED,
    MALFORMED,
    TOO_LARGE,
    TOO_SLOW,
    WRONG_CONTENT_TYPE,
    HttpError,
)
from banditrank.service._routing import Route

B = TypeVar("B", bytes, bytearray)

_MAX_LENGTH_DIGITS = 18  # of a content length; int refuses thousands


class BodyReader:
    """Reads JSON bodies within limits of size and time, and decodes them.

    Parameters
    ----------
    routes
        Routes whose bodies are decoded.
    max_bytes
        Maximum size of a body.
    timeout_seconds
        Time within which a body must arrive.
    """

    def __init__(self, routes: Iterable[Route], *, max_bytes: int, timeout_seconds: float) -> None:
        self._max_bytes, self._timeout_seconds = max_bytes, timeout_seconds
        self._decoders = {
            route.operation_id: msgspec.json.Decoder(route.request_schema)
            for route in routes
            if route.request_schema is not None
        }

    async def read(self, headers: RequestHeaders, receive: Receive) -> bytes:
        """Return the body of a request.

        Raises
        ------
        HttpError
            A 408 if it arrives too slowly, a 413 if it is too large, a 415 if it is not JSON.
        """
        _check_content_type(headers)
        length = headers.get(b"content-length", b"").lstrip(b"0")
        is_number = length.isdigit()  # other servers may pass on what is none
        if is_number and (len(length) > _MAX_LENGTH_DIGITS or int(length) > self._max_bytes):
            raise self._too_large()  # before a 100 Continue
        message = receive_now(receive)
        if message is not None and message["type"] == "http.request" and _is_last(message):
            return self._check_size(bytes(message.get("body", b"")))  # the usual case needs no timer
        content = bytearray()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                while True:
                    if message is None:
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HttpError(
                            CLIENT_DISCONNECTED, "the client disconnected before its body arrived"
                        )
                    content += message.get("body", b"")
                    self._check_size(content)
                    if _is_last(message):
                        return bytes(content)
                    message = None
        except TimeoutError:
            detail = f"a body must arrive within {self._timeout_seconds:g} seconds"
            raise HttpError(TOO_SLOW, detail) from None

    def _check_size(self, content: B) -> B:
        if len(content) > self._max_bytes:
            raise self._too_large()
        return content

    def _too_large(self) -> HttpError:
        return HttpError(TOO_LARGE, f"a body must be at most {self._max_bytes:,} bytes")

    def decode(self, route: Route, content: bytes) -> Any:
        """Return the body as an instance of the route's `request_schema`.

        Raises
        ------
        HttpError
            A 400 if it is not valid JSON.
        InvalidInputError
            If it does not conform to the schema.
        """
        try:
            try:
                return self._decoders[route.operation_id].decode(content)
            except msgspec.ValidationError as error:
                raise body_error(route.request_schema, content, error) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HttpError(MALFORMED, str(error)) from None
        except RecursionError:
            raise HttpError(MALFORMED, "the body is nested too deeply") from None


def _check_content_type(headers: RequestHeaders) -> None:
    content_type = headers.get(b"content-type", b"")
    if content_type != JSON and content_type.partition(b";")[0].strip().lower() != JSON:
        received = content_type.decode("latin-1")[:80]
        raise HttpError(WRONG_CONTENT_TYPE, f"content-type must be application/json, got {received!r}")


def _is_last(message: Any) -> bool:
    return not message.get("more_body", False)
