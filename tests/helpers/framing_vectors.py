"""Hostile and legitimate byte sequences for an HTTP/1.1 server, with the requests that each contains.

A vector lists the requests that were *sent as such* under RFC 9112. Bytes inside a body, behind an ambiguous
head or behind an upgrade are not requests, even if they look like one: most vectors hide `CANARY` there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

FEEDBACK = "/v1/feedback"
CANARY_PATH = "/v1/surfaces/canary"
PROBE_PATH = "/healthz"

CANARY = b"DELETE /v1/surfaces/canary HTTP/1.1\r\nHost: localhost\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /v1/surfaces HTTP/1.1\r\nHost: localhost\r\n"
N = len(CANARY)
MANY_BYTES = 1 << 19  # beyond every server's limit for a head


@dataclass(frozen=True)
class Request:
    """A request as an application sees it."""

    method: str
    path: str
    body: bytes = b""


@dataclass(frozen=True)
class Vector:
    """Bytes to send on one connection, and the allowed reactions.

    Parameters
    ----------
    name
        What is sent.
    packets
        The bytes, in the pieces in which they are sent.
    requests
        The requests among the bytes. An application sees these, in this order, or only the first of them.
    n_served
        How many of them a server has to serve.
    keeps
        Whether the next request on the connection has to be served (True), must not be (False), or may be.
    begun
        A request whose head is valid and whose body never is: the application may see the head.
    trailers
        Fields sent behind a body, by name and value, which an application must not see among the headers.
    refused_by_application
        The head is well-formed and the application must refuse it.
    half_closes
        The client ends its side of the connection instead of sending another request.
    """

    name: str
    packets: tuple[bytes, ...]
    requests: tuple[Request, ...] = ()
    n_served: int = 0
    keeps: bool | None = None
    begun: Request | None = None
    trailers: tuple[tuple[str, str], ...] = ()
    refused_by_application: bool = False
    half_closes: bool = False


POSTED_CANARY = Request("POST", FEEDBACK, CANARY)
EMPTY_POST = Request("POST", FEEDBACK)
LISTED = Request("GET", "/v1/surfaces")
DELETED_OTHER = Request("DELETE", "/v1/surfaces/absent", CANARY)


def _served(
    name: str, *packets: bytes, requests: Iterable[Request], keeps: bool = True, **more: object
) -> Vector:
    """Return a vector of a conforming client, which a server has to serve."""
    told = tuple(requests)
    return Vector(name, packets, told, len(told), keeps, **more)  # type: ignore[arg-type]


def _refused(name: str, *packets: bytes, requests: Iterable[Request] = (), **more: object) -> Vector:
    """Return a vector that a server has to refuse, and to close the connection."""
    return Vector(name, packets, tuple(requests), 0, False, **more)  # type: ignore[arg-type]


def _either(name: str, *packets: bytes, requests: Iterable[Request], **more: object) -> Vector:
    """Return a vector that a server may refuse, or serve as it was sent."""
    return Vector(name, packets, tuple(requests), 0, None, **more)  # type: ignore[arg-type]


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    """Return one chunk."""
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n" % N
HIDDEN = chunk(CANARY) + b"0\r\n\r\n"


def _content_lengths() -> Iterable[Vector]:
    def with_lines(*lines: bytes) -> bytes:
        return POST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + CANARY

    n = b"%d" % N
    for name, value in {
        "plus sign": b"+" + n,
        "minus sign": b"-" + n,
        "hexadecimal": b"0x%x" % N,
        "space inside": n[:1] + b" " + n[1:],
        "two numbers": n + b" " + n,
        "comma list of different lengths": n + b", 0",
        "comma list of zero and a length": b"0, " + n,
        "decimal point": n + b".0",
        "exponent": b"1e2",
        "underscore": n[:1] + b"_" + n[1:],
        "letters": b"many",
        "empty": b"",
        "only a comma": b",",
        "vertical tab before it": b"\x0b" + n,
        "form feed behind it": n + b"\x0c",
        "NUL behind it": n + b"\x00",
        "quoted": b'"' + n + b'"',
        "semicolon": n + b";a=b",
        "Arabic digits": "\u0665\u0668".encode(),
        "2**64 + length": b"%d" % (2**64 + N),
        "2**64": b"%d" % 2**64,
        "2**32 + length over 2**64": b"%d" % (2**96 + 2**32 + N),
        "thousand digits": b"9" * 1000,
    }.items():
        yield _refused(f"content-length: {name}", with_lines(b"Content-Length: " + value))
    for name, lines in {
        "different, longer first": (b"Content-Length: " + n, b"Content-Length: 0"),
        "different, longer last": (b"Content-Length: 0", b"Content-Length: " + n),
        "valid and invalid": (b"Content-Length: " + n, b"Content-Length: x"),
        "valid and empty": (b"Content-Length: " + n, b"Content-Length:"),
    }.items():
        yield _refused(f"content-length twice: {name}", with_lines(*lines))
    for name, lines in {
        "twice the same": (b"Content-Length: " + n,) * 2,
        "comma list of the same": (b"Content-Length: %s, %s" % (n, n),),
        "leading zeros": (b"Content-Length: 000" + n,),
        "thousand leading zeros": (b"Content-Length: " + b"0" * 1000 + n,),
    }.items():
        yield _either(f"content-length: {name}", with_lines(*lines), requests=[POSTED_CANARY])
    for name, line in {
        "white space around it": b"Content-Length: \t " + n + b" \t",
        "no space before it": b"Content-Length:" + n,
        "upper case": b"CONTENT-LENGTH: " + n,
    }.items():
        yield _served(f"content-length: {name}", with_lines(line), requests=[POSTED_CANARY])
    yield _refused(
        "content-length: bytes behind the body are no request",
        POST + b"Content-Length: 2\r\n\r\n{}\x01\x02 garbage\r\n\r\n" + CANARY,
        requests=[Request("POST", FEEDBACK, b"{}")],
    )
    yield _refused(
        "content-length: body ends early",
        POST + b"Content-Length: 1000\r\n\r\n" + CANARY,
        begun=EMPTY_POST,
        half_closes=True,
    )
    yield _refused(
        "content-length: body ends early, in two packets",
        POST + b"Content-Length: 1000\r\n\r\n",
        CANARY,
        begun=EMPTY_POST,
        half_closes=True,
    )
    yield _refused("head ends early", POST + b"Content-Length: 2\r\n", half_closes=True)


def _length_and_coding() -> Iterable[Vector]:
    conflicts = {
        "length first": LENGTH + CHUNKED,
        "coding first": CHUNKED + LENGTH,
        "length of zero": b"Content-Length: 0\r\n" + CHUNKED,
        "unknown coding": LENGTH + b"Transfer-Encoding: xchunked\r\n",
        "empty coding": LENGTH + b"Transfer-Encoding:\r\n",
        "identity": LENGTH + b"Transfer-Encoding: identity\r\n",
        "vertical tab before the coding": LENGTH + b"Transfer-Encoding: \x0bchunked\r\n",
        "space before the colon": LENGTH + b"Transfer-Encoding : chunked\r\n",
        "tab before the colon": LENGTH + b"Transfer-Encoding\t: chunked\r\n",
        "NUL in the name": LENGTH + b"Transfer-Encoding\x00: chunked\r\n",
        "folded coding": LENGTH + b"Transfer-Encoding:\r\n chunked\r\n",
        "coding behind a bare CR": LENGTH + b"X-A: b\rTransfer-Encoding: chunked\r\n",
        "coding behind a bare LF": LENGTH + b"X-A: b\nTransfer-Encoding: chunked\r\n",
        "length behind a bare LF": b"X-A: b\n" + LENGTH,
        "length behind a bare CR": b"X-A: b\r" + LENGTH,
        "folded length": b"Content-Length:\r\n %d\r\n" % N,
        "space before the colon of a length": b"Content-Length : %d\r\n" % N,
        "length in a folded line": b"X-A: b\r\n " + LENGTH,
        "length after a line that begins with a space": b" X-A: b\r\n" + LENGTH,
    }
    for name, lines in conflicts.items():
        yield _refused(f"framing conflict: {name}", POST + lines + b"\r\n" + HIDDEN)
    yield _refused("CL.TE", POST + LENGTH + CHUNKED + b"\r\n0\r\n\r\n" + CANARY)
    yield _refused("TE.CL", POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n" + HIDDEN)
    yield _refused("CL.TE in two packets", POST + LENGTH + CHUNKED + b"\r\n", b"0\r\n\r\n" + CANARY)
    yield _served(
        "an underscore makes another header",
        POST + LENGTH + b"Transfer_Encoding: chunked\r\n\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )


def _codings() -> Iterable[Vector]:
    for name, lines in {
        "xchunked": b"Transfer-Encoding: xchunked\r\n",
        "chunked, identity": b"Transfer-Encoding: chunked, identity\r\n",
        "chunked, gzip": b"Transfer-Encoding: chunked, gzip\r\n",
        "chunked, chunked": b"Transfer-Encoding: chunked, chunked\r\n",
        "twice": CHUNKED * 2,
        "chunked, then identity": CHUNKED + b"Transfer-Encoding: identity\r\n",
        "identity": b"Transfer-Encoding: identity\r\n",
        "gzip": b"Transfer-Encoding: gzip\r\n",
        "quoted": b'Transfer-Encoding: "chunked"\r\n',
        "parameter": b"Transfer-Encoding: chunked;q=1\r\n",
        "vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
        "NUL": b"Transfer-Encoding: chunked\x00\r\n",
        "non-breaking space": b"Transfer-Encoding: \xa0chunked\r\n",
        "Kelvin sign": "Transfer-Encoding: chun\u212aed\r\n".encode(),
        "space inside": b"Transfer-Encoding: chu nked\r\n",
        "space before the colon": b"Transfer-Encoding : chunked\r\n",
        "folded": b"Transfer-Encoding:\r\n chunked\r\n",
    }.items():
        yield _refused(f"transfer-encoding: {name}", POST + lines + b"\r\n" + HIDDEN, CANARY)
    for name, line in {
        "plain": b"Transfer-Encoding: chunked\r\n",
        "mixed case": b"transfer-encODING: ChUnKeD\r\n",
        "white space before it": b"Transfer-Encoding: \t chunked\r\n",
    }.items():
        yield _served(f"transfer-encoding: {name}", POST + line + b"\r\n" + HIDDEN, requests=[POSTED_CANARY])
    for name, line in {
        "gzip, chunked": b"Transfer-Encoding: gzip, chunked\r\n",
        "white space behind it": b"Transfer-Encoding: chunked \t\r\n",
        "empty list element": b"Transfer-Encoding: , chunked\r\n",
    }.items():
        yield _either(f"transfer-encoding: {name}", POST + line + b"\r\n" + HIDDEN, requests=[POSTED_CANARY])


def _chunks() -> Iterable[Vector]:
    head = POST + CHUNKED + b"\r\n"
    size = b"%x" % N
    end = b"0\r\n\r\n"
    for name, body in {
        "upper-case size": b"%X\r\n" % N + CANARY + b"\r\n" + end,
        "extension": chunk(CANARY, b";name=value") + end,
        "quoted extension": chunk(CANARY, b';name="a; b"') + end,
        "extension of the last chunk": chunk(CANARY) + b"0;last\r\n\r\n",
        "two chunks": chunk(CANARY[:7]) + chunk(CANARY[7:]) + end,
        "one byte each": b"".join(chunk(CANARY[i : i + 1]) for i in range(N)) + end,
    }.items():
        yield _served(f"chunks: {name}", head + body, requests=[POSTED_CANARY])
    for name, body in {
        "leading zeros": b"0000" + chunk(CANARY) + end,
        "zeros for the last": chunk(CANARY) + b"000\r\n\r\n",
        "thousand leading zeros": b"0" * 1000 + chunk(CANARY) + end,
        "space behind the size": size + b" \r\n" + CANARY + b"\r\n" + end,
        "extension without a name": size + b";\r\n" + CANARY + b"\r\n" + end,
        "space before an extension": size + b" ;a=b\r\n" + CANARY + b"\r\n" + end,
    }.items():
        yield _either(f"chunks: {name}", head + body, requests=[POSTED_CANARY])
    for name, body in {
        "no size": b"\r\n" + CANARY + b"\r\n" + end,
        "extension without a size": b";a=b\r\n" + CANARY + b"\r\n" + end,
        "no hexadecimal digits": b"xyz\r\n" + CANARY + b"\r\n" + end,
        "plus sign": b"+" + chunk(CANARY) + end,
        "minus sign": b"-" + chunk(CANARY) + end,
        "minus zero": b"-0\r\n\r\n" + CANARY,
        "0x prefix": b"0x" + chunk(CANARY) + end,
        "underscore": size[:1] + b"_" + size[1:] + b"\r\n" + CANARY + b"\r\n" + end,
        "space before the size": b" " + chunk(CANARY) + end,
        "vertical tab behind the size": size + b"\x0b\r\n" + CANARY + b"\r\n" + end,
        "letter behind the size": size + b"g\r\n" + CANARY + b"\r\n" + end,
        "size over 2**64": b"1" + b"0" * (16 - len(size)) + chunk(CANARY) + end,
        "thousand digits": b"f" * 1000 + b"\r\n" + CANARY + b"\r\n" + end,
        "bare LF behind the size": size + b"\n" + CANARY + b"\r\n" + end,
        "bare CR behind the size": size + b"\r" + CANARY + b"\r\n" + end,
        "bare LF behind the data": size + b"\r\n" + CANARY + b"\n" + end,
        "no CRLF behind the data": size + b"\r\n" + CANARY + end,
        "data longer than the size": b"5\r\n" + CANARY + b"\r\n" + end,
        "data shorter than the size": b"%x\r\n" % (N + 1) + CANARY + b"\r\n" + end,
        "LF in an extension": size + b";a\nb\r\n" + CANARY + b"\r\n" + end,
        "CR in an extension": size + b";a\rb\r\n" + CANARY + b"\r\n" + end,
        "NUL in an extension": size + b";a\x00b\r\n" + CANARY + b"\r\n" + end,
        "bare LF at the end": b"0\n\n" + CANARY,
        "bare LF behind the last size": b"0\n\r\n" + CANARY,
        "bare LF behind the trailers": b"0\r\n\n" + CANARY,
        "no empty line at the end": b"0\r\n" + CANARY,
    }.items():
        yield _refused(f"chunks: {name}", head + body, begun=EMPTY_POST)
        yield _refused(f"chunks in two packets: {name}", head, body, begun=EMPTY_POST)
    yield _either(
        "chunks: huge extension",
        head + chunk(CANARY, b";" + b"a" * MANY_BYTES) + end,
        requests=[POSTED_CANARY],
    )
    yield _refused(
        "chunks: size of 2**64 - 1",
        head + b"f" * 16 + b"\r\n" + CANARY + b"\r\n" + end,
        begun=EMPTY_POST,
        half_closes=True,
    )
    yield _refused("chunks: size line never ends", head + b"0" * MANY_BYTES, begun=EMPTY_POST)
    yield _refused("chunks: end early", head + chunk(CANARY), begun=EMPTY_POST, half_closes=True)
    yield _served(
        "chunks: split everywhere",
        *(bytes([byte]) for byte in head + HIDDEN),
        requests=[POSTED_CANARY],
    )


def _trailers() -> Iterable[Vector]:
    head = POST + CHUNKED + b"\r\n"
    for name, value in {
        "content-length": str(N),
        "transfer-encoding": "gzip",
        "host": "evil.example",
        "authorization": "Bearer smuggled",
        "connection": "upgrade",
        "upgrade": "h2c",
        "expect": "100-continue",
        "origin": "https://evil.example",
        "x-checksum": "1",
    }.items():
        yield _either(
            f"trailer: {name}",
            head + chunk(b"{}") + f"0\r\n{name}: {value}\r\n\r\n".encode(),
            requests=[Request("POST", FEEDBACK, b"{}")],
            trailers=((name, value),),
        )
    yield _refused("trailer: NUL in the value", head + b"0\r\nX-A: \x00\r\n\r\n" + CANARY, begun=EMPTY_POST)
    yield _refused("trailer: no colon", head + b"0\r\nX-A\r\n\r\n" + CANARY, begun=EMPTY_POST)
    yield _refused("trailer: folded", head + b"0\r\nX-A: b\r\n c\r\n\r\n" + CANARY, begun=EMPTY_POST)
    yield _refused(
        "trailer: never ends",
        head + b"0\r\n" + b"X-A: b\r\n" * (MANY_BYTES // 8),
        begun=EMPTY_POST,
        half_closes=True,
    )


def _upgrades() -> Iterable[Vector]:
    settings = b"HTTP2-Settings: AAMAAABkAARAAAAA\r\n"
    websocket = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    offers = {
        "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" + settings,
        "h2c without settings": b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "h2c without connection": b"Upgrade: h2c\r\n",
        "websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + websocket,
        "websocket without key": b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "websocket without connection": b"Upgrade: websocket\r\n" + websocket,
        "foo": b"Connection: upgrade\r\nUpgrade: foo\r\n",
        "TLS/1.2": b"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
        "list": b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c, websocket, foo/2\r\n",
        "twice": b"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: foo\r\n",
        "empty": b"Connection: Upgrade\r\nUpgrade:\r\n",
        "only connection": b"Connection: Upgrade\r\n",
    }
    for name, offer in offers.items():
        get, post = GET + offer, POST + offer
        yield _either(f"upgrade: {name}, no body", get + b"\r\n", requests=[LISTED])
        head = post + LENGTH + b"\r\n"
        yield _either(f"upgrade: {name}, body", head + CANARY, requests=[POSTED_CANARY])
        yield _either(f"upgrade: {name}, body in a second packet", head, CANARY, requests=[POSTED_CANARY])
        yield _either(
            f"upgrade: {name}, body in three packets",
            head,
            CANARY[:9],
            CANARY[9:],
            requests=[POSTED_CANARY],
        )
        head = post + CHUNKED + b"\r\n"
        yield _either(f"upgrade: {name}, chunks", head + HIDDEN, requests=[POSTED_CANARY])
        yield _either(f"upgrade: {name}, chunks in a second packet", head, HIDDEN, requests=[POSTED_CANARY])
        inner = CANARY[:-2] + offer + b"\r\n"
        told = Request("POST", FEEDBACK, inner)
        head = POST + b"Content-Length: %d\r\n\r\n" % len(inner)
        yield _served(f"upgrade inside a body: {name}", head + inner, requests=[told])
        yield _served(f"upgrade inside a body in a second packet: {name}", head, inner, requests=[told])
        body = b"\r\n" + offer + b"x" * 30 + b"\r\n" + CANARY
        told = Request("POST", FEEDBACK, body)
        head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
        yield _served(f"upgrade lines as a body: {name}", head + body, requests=[told])
    yield _served(
        "upgrade inside a chunk",
        POST + CHUNKED + b"\r\n" + chunk(b"\r\nUpgrade: h2c\r\n" + CANARY) + b"0\r\n\r\n",
        requests=[Request("POST", FEEDBACK, b"\r\nUpgrade: h2c\r\n" + CANARY)],
    )
    # A server that cuts the offer out of the first body takes the next head for the rest of that body.
    for path in (FEEDBACK, PROBE_PATH):  # the second answers before it reads the body
        following = POST + LENGTH + b"\r\n"
        body = b"a\r\nupgrade:" + b" " * (len(following) - len(b"\r\nupgrade:h2c")) + b"h2c\r\nb"
        head = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % path.encode()
        yield _served(
            f"upgrade inside a body, as long as the next head: {path}",
            head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
            following + CANARY,
            requests=[Request("POST", path, body), POSTED_CANARY],
        )
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield _refused("HTTP/2 preface", preface + CANARY)
    yield _refused("HTTP/2 preface in two packets", preface[:18], preface[18:] + CANARY)
    yield _refused("HTTP/2 preface after a request", GET + b"\r\n", preface + CANARY, requests=[LISTED])
    yield _refused("CONNECT", b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n", CANARY)
    yield _refused(
        "CONNECT with a body",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n" + LENGTH + b"\r\n" + CANARY,
    )
    yield _refused("CONNECT to a path", b"CONNECT /v1/surfaces HTTP/1.1\r\nHost: localhost\r\n\r\n", CANARY)


def _header_bytes() -> Iterable[Vector]:
    for name, lines in {
        "NUL in a name": b"X\x00A: b\r\n",
        "NUL in a value": b"X-A: b\x00c\r\n",
        "control byte in a name": b"X\x01A: b\r\n",
        "control byte in a value": b"X-A: b\x01c\r\n",
        "DEL in a name": b"X\x7fA: b\r\n",
        "DEL in a value": b"X-A: b\x7fc\r\n",
        "high byte in a name": b"X\xe9A: b\r\n",
        "space in a name": b"X A: b\r\n",
        "space before the colon": b"X-A : b\r\n",
        "parenthesis in a name": b"X(A): b\r\n",
        "no name": b": b\r\n",
        "no colon": b"X-A\r\n",
        "bare CR in a value": b"X-A: b\rc\r\n",
        "bare CR at the end of a line": b"X-A: b\r",
        "bare CR and CRLF": b"X-A: b\r\r\n",
        "folded value": b"X-A: b\r\n c\r\n",
        "folded with a tab": b"X-A: b\r\n\tc\r\n",
        "bare LF at the end of a line": b"X-A: b\n",
        "bare LF in a folded line": b"X-A: b\n c\r\n",
        "colon at the start of a line": b":X-A: b\r\n",
    }.items():
        yield _refused(f"header: {name}", POST + lines + LENGTH + b"\r\n" + CANARY)
    yield _refused(
        "header: first line folded", b"GET / HTTP/1.1\r\n X-A: b\r\nHost: localhost\r\n\r\n", CANARY
    )
    yield _refused("header: bare LF ends the head", POST + LENGTH + b"\n" + CANARY)
    yield _refused("header: bare CR ends the head", POST + LENGTH + b"\r" + CANARY)
    yield _refused("header: bare LF everywhere", (POST + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + CANARY)
    yield _refused(
        "header: bare CR everywhere", (POST + LENGTH + b"\r\n").replace(b"\r\n", b"\r") + CANARY, PROBE
    )
    yield _either(
        "header: high byte in a value", POST + b"X-A: \xe9\xff\r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )  # fmt: skip
    yield _served(
        "header: empty value", POST + b"X-A:\r\nX-B: \r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )  # fmt: skip
    yield _served(
        "header: hop-by-hop names of framing headers",
        POST + b"Connection: content-length, transfer-encoding, host\r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )
    yield _served("header: two thousand", GET + b"X-A: b\r\n" * 2000 + b"\r\n", requests=[LISTED])
    yield _refused("head too long: one header", GET + b"X-A: " + b"b" * MANY_BYTES + b"\r\n\r\n", CANARY)
    yield _refused("head too long: many headers", GET + b"X-A: b\r\n" * (MANY_BYTES // 8) + b"\r\n", CANARY)
    yield _refused("head too long: name", GET + b"X" * MANY_BYTES + b": b\r\n\r\n", CANARY)
    target = b"GET /" + b"a" * MANY_BYTES + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield _refused("head too long: target", target, CANARY)
    yield _refused(
        "head too long: method", b"A" * MANY_BYTES + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n", CANARY
    )


def _request_lines() -> Iterable[Vector]:
    rest = b"\r\nHost: localhost\r\n\r\n"
    for name, line in {
        "HTTP/0.9": b"GET /v1/surfaces\r\n",
        "HTTP/0.9 with headers": b"GET /v1/surfaces" + rest,
        "HTTP/2.0": b"GET /v1/surfaces HTTP/2.0" + rest,
        "HTTP/3.0": b"GET /v1/surfaces HTTP/3.0" + rest,
        "HTTP/0.9 named": b"GET /v1/surfaces HTTP/0.9" + rest,
        "HTTP/1.10": b"GET /v1/surfaces HTTP/1.10" + rest,
        "HTTP/11": b"GET /v1/surfaces HTTP/11" + rest,
        "HTTP/1.": b"GET /v1/surfaces HTTP/1." + rest,
        "lower-case version": b"GET /v1/surfaces http/1.1" + rest,
        "unknown protocol": b"GET /v1/surfaces FTP/1.0" + rest,
        "space in the target": b"GET /v1/surfaces /x HTTP/1.1" + rest,
        "NUL in the target": b"GET /v1/sur\x00faces HTTP/1.1" + rest,
        "bare CR in the target": b"GET /v1/sur\rfaces HTTP/1.1" + rest,
        "bare LF behind the line": b"GET /v1/surfaces HTTP/1.1\nHost: localhost\r\n\r\n",
        "bare CR behind the line": b"GET /v1/surfaces HTTP/1.1\rHost: localhost\r\n\r\n",
        "tabs for spaces": b"GET\t/v1/surfaces\tHTTP/1.1" + rest,
        "no target": b"GET  HTTP/1.1" + rest,
        "no method": b" /v1/surfaces HTTP/1.1" + rest,
        "control byte in the method": b"G\x01ET /v1/surfaces HTTP/1.1" + rest,
        "colon in the method": b"GE:T /v1/surfaces HTTP/1.1" + rest,
        "target without a slash": b"GET v1/surfaces HTTP/1.1" + rest,
        "TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "PROXY protocol": b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET /v1/surfaces HTTP/1.1" + rest,
    }.items():
        yield _refused(f"request line: {name}", line, CANARY)
    for name, line, told in (
        ("two spaces", b"GET  /v1/surfaces HTTP/1.1" + rest, LISTED),
        ("space behind the line", b"GET /v1/surfaces HTTP/1.1 " + rest, LISTED),
        ("two empty lines before it", b"\r\n\r\nGET /v1/surfaces HTTP/1.1" + rest, LISTED),
        ("RTSP/1.0", b"GET /v1/surfaces RTSP/1.0" + rest, LISTED),
        ("HTTP/1.2", b"GET /v1/surfaces HTTP/1.2" + rest, LISTED),
        ("lower-case method", b"get /v1/surfaces HTTP/1.1" + rest, Request("get", "/v1/surfaces")),
        ("unknown method", b"BREW /v1/surfaces HTTP/1.1" + rest, Request("BREW", "/v1/surfaces")),
        ("fragment", b"GET /v1/surfaces#x HTTP/1.1" + rest, LISTED),
        ("OPTIONS *", b"OPTIONS * HTTP/1.1" + rest, Request("OPTIONS", "*")),
        ("TRACE", b"TRACE /v1/surfaces HTTP/1.1" + rest, Request("TRACE", "/v1/surfaces")),
        ("absolute form, other host", b"GET http://evil.example/v1/surfaces HTTP/1.1" + rest, LISTED),
    ):
        yield _either(f"request line: {name}", line, requests=[told])
    for name, line in {
        "empty line before it": b"\r\nGET /v1/surfaces HTTP/1.1" + rest,
        "absolute form": b"GET http://localhost/v1/surfaces HTTP/1.1" + rest,
    }.items():
        yield _served(f"request line: {name}", line, requests=[LISTED])
    for name, lines in {
        "missing": b"X-A: b\r\n",
        "twice": b"Host: localhost\r\nHost: localhost\r\n",
        "twice, different": b"Host: localhost\r\nHost: evil.example\r\n",
        "comma list": b"Host: localhost, evil.example\r\n",
        "empty": b"Host:\r\n",
        "with a path": b"Host: localhost/x\r\n",
        "with a user": b"Host: localhost@evil.example\r\n",
    }.items():
        yield _either(
            f"host: {name}", b"GET /v1/surfaces HTTP/1.1\r\n" + lines + b"\r\n", requests=[LISTED],
            refused_by_application=True,
        )  # fmt: skip


def _versions_and_expectations() -> Iterable[Vector]:
    old = b"POST /v1/feedback HTTP/1.0\r\nHost: localhost\r\n"
    yield _served("HTTP/1.0", old + LENGTH + b"\r\n" + CANARY, CANARY, requests=[POSTED_CANARY], keeps=False)
    yield _either(
        "HTTP/1.0 with keep-alive", old + b"Connection: keep-alive\r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )  # fmt: skip
    yield _refused("HTTP/1.0 with chunks", old + CHUNKED + b"\r\n" + HIDDEN, requests=[POSTED_CANARY])
    yield _refused(
        "HTTP/1.0 with chunks and keep-alive",
        old + b"Connection: keep-alive\r\n" + CHUNKED + b"\r\n" + HIDDEN,
        requests=[POSTED_CANARY],
    )
    yield _refused("HTTP/1.0 with length and chunks", old + LENGTH + CHUNKED + b"\r\n" + HIDDEN)
    expect = b"Expect: 100-continue\r\n"
    head = POST + expect + LENGTH + b"\r\n"
    yield _served("expect: body at once", head + CANARY, requests=[POSTED_CANARY])
    yield _served("expect: body in a second packet", head, CANARY, requests=[POSTED_CANARY])
    yield _served("expect: chunks", POST + expect + CHUNKED + b"\r\n", HIDDEN, requests=[POSTED_CANARY])
    yield _served("expect: no body", GET + expect + b"\r\n", requests=[LISTED])
    yield _served(
        "expect: HTTP/1.0", old + expect + LENGTH + b"\r\n" + CANARY, requests=[POSTED_CANARY], keeps=False
    )
    yield _either(
        "expect: unknown",
        POST + b"Expect: miracles\r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )
    yield _either(
        "expect: list",
        POST + b"Expect: 100-continue, miracles\r\n" + LENGTH + b"\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )
    yield _refused(
        "expect: body never sent", POST + expect + LENGTH + b"\r\n", begun=EMPTY_POST, half_closes=True
    )


def _sequences() -> Iterable[Vector]:
    good = POST + LENGTH + b"\r\n" + CANARY
    listed = GET + b"\r\n"
    yield _served("pipeline of three", good + listed + good, requests=[POSTED_CANARY, LISTED, POSTED_CANARY])
    yield _served("pipeline of fifty", listed * 50, requests=[LISTED] * 50)
    yield _served(
        "pipeline, split in a head",
        good + listed[:10],
        listed[10:] + good,
        requests=[POSTED_CANARY, LISTED, POSTED_CANARY],
    )
    yield _either("pipeline, half-closed", good + listed, requests=[POSTED_CANARY, LISTED], half_closes=True)
    yield _served(
        "body split everywhere",
        POST + LENGTH + b"\r\n",
        *(bytes([byte]) for byte in CANARY),
        requests=[POSTED_CANARY],
    )
    yield _refused(
        "pipeline with an error in the middle",
        good + b"GET /v1/surfaces\r\nHost: localhost\r\n\r\n" + CANARY,
        requests=[POSTED_CANARY],
    )
    yield _refused(
        "pipeline with two lengths in the middle",
        listed + POST + LENGTH + b"Content-Length: 0\r\n\r\n" + CANARY,
        requests=[LISTED],
    )
    yield _refused(
        "pipeline with bad chunks in the middle",
        listed + POST + CHUNKED + b"\r\nxyz\r\n" + CANARY,
        requests=[LISTED],
        begun=EMPTY_POST,
    )
    close = GET + b"Connection: close\r\n\r\n"
    yield _served("requests behind a close", close + CANARY, requests=[LISTED], keeps=False)
    yield _served("requests behind a close, in two packets", close, CANARY, requests=[LISTED], keeps=False)
    yield _served(
        "close among other options",
        GET + b"Connection: x, Close\r\n\r\n" + CANARY,
        requests=[LISTED],
        keeps=False,
    )
    yield _served(
        "close in a second header",
        GET + b"Connection: keep-alive\r\nConnection: close\r\n\r\n" + CANARY,
        requests=[LISTED],
        keeps=False,
    )
    head = GET + LENGTH + b"\r\n"
    told = Request("GET", "/v1/surfaces", CANARY)
    yield _served("GET with a body", head + CANARY, requests=[told])
    yield _served("GET with a body in a second packet", head, CANARY, requests=[told])
    yield _served("GET with chunks", GET + CHUNKED + b"\r\n" + HIDDEN, requests=[told])
    head = b"DELETE /v1/surfaces/absent HTTP/1.1\r\nHost: localhost\r\n"
    yield _served("DELETE with a body", head + LENGTH + b"\r\n" + CANARY, requests=[DELETED_OTHER])
    yield _served("DELETE with chunks", head + CHUNKED + b"\r\n", HIDDEN, requests=[DELETED_OTHER])
    head = b"HEAD /v1/surfaces HTTP/1.1\r\nHost: localhost\r\n"
    yield _served("HEAD", head + b"\r\n", requests=[Request("HEAD", "/v1/surfaces")])
    yield _served(
        "HEAD between others",
        listed + head + b"\r\n" + listed,
        requests=[LISTED, Request("HEAD", "/v1/surfaces"), LISTED],
    )
    yield _served(
        "HEAD with a body",
        head + LENGTH + b"\r\n" + CANARY,
        requests=[Request("HEAD", "/v1/surfaces", CANARY)],
    )
    head = b"OPTIONS /v1/surfaces HTTP/1.1\r\nHost: localhost\r\n" + LENGTH + b"\r\n"
    yield _served("OPTIONS with a body", head + CANARY, requests=[Request("OPTIONS", "/v1/surfaces", CANARY)])
    yield _served("body in a second packet", POST + LENGTH + b"\r\n", CANARY, requests=[POSTED_CANARY])
    # Denied or absent routes answer before they read the body, which stays a body.
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n" + LENGTH + b"\r\n"
    yield _served("body behind an early answer", head, CANARY, requests=[Request("POST", "/healthz", CANARY)])
    head = b"POST /v1/absent HTTP/1.1\r\nHost: localhost\r\n" + CHUNKED + b"\r\n"
    yield _served(
        "chunks behind an early answer", head, HIDDEN, requests=[Request("POST", "/v1/absent", CANARY)]
    )


VECTORS = (
    *_content_lengths(),
    *_length_and_coding(),
    *_codings(),
    *_chunks(),
    *_trailers(),
    *_upgrades(),
    *_header_bytes(),
    *_request_lines(),
    *_versions_and_expectations(),
    *_sequences(),
)
"""Every vector; names are unique."""


def splits() -> Iterable[Vector]:
    """Yield a few requests, split into two packets at every byte."""
    for name, data, told in (
        ("length", POST + LENGTH + b"\r\n" + CANARY, POSTED_CANARY),
        ("chunks", POST + CHUNKED + b"\r\n" + HIDDEN, POSTED_CANARY),
    ):
        for at in range(1, len(data)):
            yield _served(f"{name} split at {at}", data[:at], data[at:], requests=[told])
    conflict = POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n" + HIDDEN
    for at in range(1, len(conflict)):
        yield _refused(f"conflict split at {at}", conflict[:at], conflict[at:])
    upgrade = POST + b"Connection: Upgrade\r\nUpgrade: foo\r\n" + LENGTH + b"\r\n" + CANARY
    for at in range(1, len(upgrade)):
        yield _either(f"upgrade split at {at}", upgrade[:at], upgrade[at:], requests=[POSTED_CANARY])
