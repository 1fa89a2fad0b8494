"""Requests with damaged bytes, for every route of the service, sent without a network."""

import json
import random
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.types import ASGIApp

from banditrank.service._routing import Route

HOST = (b"host", b"127.0.0.1:8420")
JSON = (b"content-type", b"application/json")

# Bodies that reach every schema. A surface is never created, because that may compile code.
BODIES: dict[str, Any] = {
    "createSurface": {
        "name": "new",
        "items": ["a", "b"],
        "n_positions": 9,
        "user_types": ["x"],
        "coefficient": 0.5,
        "guarantees": [
            {"kind": "least-exposure", "level": 0.1, "items": ["a"]},
            {"kind": "kept-share", "share": 0.1},
        ],
        "experiment": {"name": "e", "arms": [{"name": "h", "share": 0.1, "policy": "fixed", "order": ["a"]}]},
    },
    "updateSurface": {"policy": "auto", "user_types": ["new", "old"], "attribution_seconds": 50.0},
    "addItems": {"items": ["c", "d"]},
    "syncItems": {"items": ["a", "b", "c"]},
    "rank": {
        "user_type": "new",
        "candidates": ["a", "b", "z"],
        "exclude": ["q"],
        "pinned": {"1": "a"},
        "visitor": "v",
    },
    "rankBatch": {"user_types": ["new", "old"], "candidates": ["a", "b", "z"], "visitors": ["v", None]},
    "feedback": {"ranking": "RANKING", "clicked": "a", "reward": 0.5, "final": True},
    "feedbackBatch": {"feedback": [{"ranking": "RANKING", "clicked": ["a"]}, {"ranking": "x"}]},
}
STRINGS = (
    b'"a"',
    b'""',
    b'"\xff"',
    b'"\xc3"',
    b'"\xed\xa0\x80"',  # a lone surrogate
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"a\\u0000b"',
    b'"\x00"',
    b'"\\u202e"',
    b'"' + b"x" * 300 + b'"',
    '"é"'.encode(),
)
NUMBERS = (
    b"1e999",
    b"-1e999",
    b"NaN",
    b"Infinity",
    b"-0",
    b"1" * 400,
    b"18446744073709551616",
    b"1.0",
    b"01",
)
OTHERS = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"",
    b"[" * 2000,
    b'{"a":' * 150 + b"1" + b"}" * 150,
    b"[1,]",
    b"\xff\xfe",
)
SEGMENTS = (
    b"%ff",
    b"%00",
    b"home%00",
    b"%ed%a0%80",
    b"a" * 500,
    b"..",
    b"%2e%2e",
    b"\xff",
    b"a%2Fb",
    b"%",
    b"%zz",
    b"a%0a",
)
QUERIES = (
    b"",
    b"level=%ff",
    b"level=nan",
    b"level=1e999",
    b"level=" + b"1" * 5000,
    b"level=%C2%B2",
    b"since=%00",
    b"since=9999-12-31T23:59:59.9%2B23:59",
    b"since=0001-01-01T00:00:00%2B23:59",
    b"since=2026-02-30",
    b"\xff=\xff",
    b"&&&=",
)
HEADERS = (
    (b"accept", b"\xff"),
    (b"if-none-match", b"\xff\x00"),
    (b"x-request-id", b"\xff"),
    (b"authorization", b"Bearer \xff\xfe"),
    (b"authorization", b"Bearer br_\xc3\xa9_x"),
    (b"content-encoding", b"gzip"),
    (b"origin", b"\xff"),
    (b"host", b"\xff"),
    (b"content-length", b"\xb2"),
    (b"content-length", b"9" * 30),
    (b"content-type", b"application/json; charset=utf-16"),
    (b"content-type", b"\xff"),
)


class FuzzedRequest(NamedTuple):
    """A request as an ASGI server passes it on."""

    method: str
    raw_path: bytes
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Fuzzer:
    """Generates damaged requests.

    Parameters
    ----------
    seed
        Seed of all choices.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - reproducible, not secret

    def request(
        self, route: Route, parameters: dict[str, str], *headers: tuple[bytes, bytes]
    ) -> FuzzedRequest:
        """Return a request of a route, in which about every part may be damaged.

        Parameters
        ----------
        route
            The route.
        parameters
            Valid parameters of its path, and ``ranking`` also of bodies.
        headers
            Headers of every request.
        """
        rng, raw_path = self._rng, route.path.encode()
        for name, value in parameters.items():
            segment = value.encode() if rng.random() < 0.7 else rng.choice(SEGMENTS)
            raw_path = raw_path.replace(b"{%s}" % name.encode(), segment)
        body = b""
        if route.operation_id in BODIES:
            document = json.dumps(BODIES[route.operation_id]).replace("RANKING", parameters["ranking"])
            body = self._damaged(self._encoded(json.loads(document)))
        sent = [HOST, JSON, *headers]
        if rng.random() < 0.15:
            # Of repeated headers, some readers take the first and some the last.
            sent.insert(rng.choice((0, len(sent))), rng.choice(HEADERS))
        query = rng.choice(QUERIES) if route.query else b""
        return FuzzedRequest(route.method, raw_path, query, tuple(sent), body)

    def _encoded(self, value: Any) -> bytes:
        """Return JSON in which some values and keys are replaced, repeated, added or left out."""
        rng = self._rng
        for chance, values in ((0.06, STRINGS), (0.03, NUMBERS), (0.03, OTHERS)):
            if rng.random() < chance:
                return rng.choice(values)
        if isinstance(value, list):
            return b"[" + b",".join(map(self._encoded, value)) + b"]"
        if not isinstance(value, dict):
            return json.dumps(value).encode()
        fields = [(json.dumps(key).encode(), self._encoded(each)) for key, each in value.items()]
        keys = [key for key in (rng.choice(STRINGS), b'"unknown"', fields[0][0]) if rng.random() < 0.2]
        fields += [(key, rng.choice((*STRINGS, *NUMBERS, *OTHERS))) for key in keys]
        if rng.random() < 0.1:
            fields.pop(0)
        rng.shuffle(fields)
        return b"{" + b",".join(key + b":" + each for key, each in fields) + b"}"

    def _damaged(self, body: bytes) -> bytes:
        """Return a body in which some bytes are changed, added or missing."""
        rng, damaged = self._rng, bytearray(body)
        if rng.random() < 0.7:
            return body
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(damaged) + 1)
            kind = rng.randrange(5)
            if kind == 0:
                damaged[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 1:
                damaged[at:at] = rng.choice((b"\xff", b"\xc3", b"\x00", b'"', b"\\", b"{"))
            elif kind == 2:
                del damaged[at : at + 1]
            elif kind == 3:
                del damaged[at:]
            else:
                damaged[:0] = b"\xef\xbb\xbf"  # a byte order mark
        return bytes(damaged)


async def send(application: ASGIApp, request: FuzzedRequest) -> tuple[int, bytes]:
    """Send a request to an application in this process, and return the status and the body."""
    messages: list[Any] = [{"type": "http.request", "body": request.body}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": request.method,
        "path": unquote(request.raw_path.decode("latin-1")),
        "raw_path": request.raw_path,
        "query_string": request.query,
        "http_version": "1.1",
        "headers": list(request.headers),
    }
    await application(scope, receive, collect)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
