"""ASGI types, requests, responses and request ids."""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from banditrank.service._auth import Principal

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApplication: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
RequestHeaders: TypeAlias = Mapping[bytes, bytes]
"""Headers by lower-case name; the last value of a repeated name."""

JSON = b"application/json"
REQUEST_ID = b"x-request-id"

NO_STORE: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers of responses that are never cached."""

REVALIDATE: Headers = ((b"cache-control", b"no-cache"), (b"x-content-type-options", b"nosniff"))
"""Headers of responses that are cached and revalidated by their entity tag."""

_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._~-]{1,64}")


class Response(NamedTuple):
    """A response with its whole body."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: Headers = ()
    caching: Headers = NO_STORE

    async def send(self, send: Send, request_id: str | None = None, *, close: bool = False) -> None:
        """Send the response.

        Parameters
        ----------
        send
            ASGI callable.
        request_id
            Value of the ``x-request-id`` header; None to omit it.
        close
            Whether to close the connection, because the body of the request was not read.
        """
        headers = [*self.headers, *self.caching, *self._body_headers()]
        if request_id is not None:
            headers.append((REQUEST_ID, request_id.encode()))
        if close:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def _body_headers(self) -> Headers:
        if not self.body:
            return ()
        return ((b"content-type", self.content_type), (b"content-length", b"%d" % len(self.body)))

    def head(self) -> "Response":
        """Return the response to a HEAD request: the same headers and no body."""
        return self._replace(body=b"", headers=(*self.headers, *self._body_headers()))


@dataclass(slots=True)
class Request:
    """A request after routing, authentication and decoding, as handlers receive it.

    Attributes
    ----------
    id
        Request id, for log lines and error responses.
    parameters
        Parameters in the path.
    query
        Parameters in the query string.
    body
        Decoded body, an instance of the route's `request_schema`.
    headers
        Request headers.
    principal
        The authenticated caller.
    """

    id: str
    parameters: Mapping[str, str]
    query: dict[str, str]
    body: Any
    headers: RequestHeaders
    principal: "Principal"

    def conditional(self, response: Response, etag: bytes) -> Response:
        """Return the response with its entity tag, or a 304 if the client sent the same tag."""
        tagged = response._replace(headers=(*response.headers, (b"etag", etag)))
        known = self.headers.get(b"if-none-match", b"")
        etags = {one.strip().removeprefix(b"W/") for one in known.split(b",")}
        if etag.removeprefix(b"W/") in etags or b"*" in etags:
            return tagged._replace(status=304, body=b"")
        return tagged


def parse_query(scope: Scope) -> dict[str, str]:
    """Return the parameters of the query string; the last value of a repeated name."""
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


def receive_now(receive: Receive) -> MutableMapping[str, Any] | None:
    """Return the next message if it has arrived, otherwise None."""
    receiving = receive().__await__()
    try:
        receiving.send(None)
    except StopIteration as received:
        message: MutableMapping[str, Any] = received.value
        return message
    receiving.close()
    return None


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects; drops what it sends meanwhile."""
    while (await receive())["type"] != "http.disconnect":
        pass


class RequestIds:
    """Generator of request ids that are unique across processes.

    Parameters
    ----------
    prefix
        Prefix of all ids; random by default.

    Examples
    --------
    >>> ids = RequestIds("4f0c")
    >>> ids.for_request({}), ids.for_request({})
    ('4f0c-1', '4f0c-2')
    >>> ids.for_request({b"x-request-id": b"proxy-7"}), ids.for_request({b"x-request-id": b"a b"})
    ('proxy-7', '4f0c-3')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self._prefix = secrets.token_hex(4) if prefix is None else prefix
        self._numbers = count(1)

    def for_request(self, headers: RequestHeaders) -> str:
        """Return the id that the client sent if it is valid, or a new one."""
        sent = headers.get(REQUEST_ID)
        if sent is not None and _REQUEST_ID_PATTERN.fullmatch(sent):
            return sent.decode("ascii")
        return f"{self._prefix}-{next(self._numbers):x}"
