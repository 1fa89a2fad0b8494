"""Requests and responses: as little as the service needs between its server and its operations."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from banditrank.service.auth import Principal

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
RequestHeaders: TypeAlias = Mapping[bytes, bytes]
"""By name in lower case; of a name that comes twice the last counts."""

JSON = b"application/json"
REQUEST_ID = b"x-request-id"

# What is said with every response: it is neither to be kept nor taken for something else. Pages say more.
ALWAYS: Headers = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
# What may be kept, if it is asked for again each time whether it is still the same.
REVALIDATED: Headers = ((b"cache-control", b"no-cache"), (b"x-content-type-options", b"nosniff"))


class Response(NamedTuple):
    """What is sent back."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: Headers = ()
    handling: Headers = ALWAYS

    async def send(self, send: Send, request_id: str | None = None, *, close: bool = False) -> None:
        """Send the response, and close the connection if the body of the request was not read."""
        headers = [*self.headers, *self.handling, *self._of_the_body()]
        if request_id is not None:
            headers.append((REQUEST_ID, request_id.encode("ascii")))
        if close:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

    def _of_the_body(self) -> Headers:
        if not self.body:
            return ()
        return ((b"content-type", self.content_type), (b"content-length", b"%d" % len(self.body)))

    def head(self) -> "Response":
        """Return the response to a HEAD request: what is said of the body, and no body."""
        return self._replace(body=b"", headers=(*self.headers, *self._of_the_body()))


@dataclass(slots=True)
class Request:
    """A request that passed routing, authentication and decoding, as handlers take it."""

    id: str  # for logs, and to quote in a report
    parameters: Mapping[str, str]  # from the path
    query: dict[str, str]
    body: Any  # of the type that the operation declares
    headers: RequestHeaders
    principal: "Principal"

    def if_changed(self, response: Response, tag: bytes) -> Response:
        """Return a response under an entity tag; nothing but the tag, if the client has it already."""
        tagged = response._replace(headers=(*response.headers, (b"etag", tag)))
        known = self.headers.get(b"if-none-match", b"")
        given = {one.strip().removeprefix(b"W/") for one in known.split(b",")}
        if tag.removeprefix(b"W/") in given or b"*" in given:
            return tagged._replace(status=304, body=b"")
        return tagged


def query_of(scope: Scope) -> dict[str, str]:
    """Return a request's query; of a name that comes twice the last counts."""
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
