"""Framing of HTTP/1.1 requests: where a request ends, and what its target is, from parsed headers.

Requests are never rewritten. If the end or the host of a request is ambiguous, it is rejected: another server
in front of this one may find another end, and the bytes in between would become a request (smuggling).
"""

from typing import TypeAlias
from urllib.parse import unquote

import httptools

ParsedHeaders: TypeAlias = list[tuple[bytes, bytes]]
"""Headers in the order in which they were sent, with lower-case names."""


def check_framing(version: str, headers: ParsedHeaders) -> None:
    """Raise ValueError unless the end and the host of a request are unambiguous.

    The parser rejects repeated and invalid lengths, and a length beside a transfer encoding.

    Examples
    --------
    >>> check_framing("1.1", [(b"host", b"localhost"), (b"transfer-encoding", b"chunked")])
    >>> check_framing("1.1", [(b"host", b"localhost"), (b"transfer-encoding", b"gzip, chunked")])
    Traceback (most recent call last):
    ValueError: the transfer encoding must be chunked and the version HTTP/1.1
    """
    if version not in ("1.1", "1.0"):
        raise ValueError(f"HTTP/{version} is not supported")
    names = [name for name, _ in headers]
    if names.count(b"host") != 1 and (version == "1.1" or b"host" in names):
        raise ValueError("a request must have exactly one host")
    if b"transfer-encoding" not in names:
        return
    encodings = [value for name, value in headers if name == b"transfer-encoding"]
    if version == "1.0" or len(encodings) > 1 or encodings[0].lower() != b"chunked":
        raise ValueError("the transfer encoding must be chunked and the version HTTP/1.1")


def length_after_upgrade(method: bytes, headers: ParsedHeaders) -> int:
    """Return the length of the body of a request with an upgrade, which the parser does not read.

    Raises ValueError if the end of the request is ambiguous.

    Examples
    --------
    >>> length_after_upgrade(b"POST", [(b"upgrade", b"h2c"), (b"content-length", b"7")])
    7
    """
    if method == b"CONNECT":
        raise ValueError("CONNECT is not supported")
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise ValueError("an upgrade with a chunked body is not supported")
    # The parser rejects repeated and invalid lengths.
    return next((int(value) for name, value in headers if name == b"content-length"), 0)


def head_size(target: bytes, headers: ParsedHeaders) -> int:
    """Return the approximate size of a head in bytes."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers)


def split_target(target: bytes) -> tuple[str, bytes, bytes]:
    """Return the decoded path, the percent-encoded path and the query string of a request target.

    Raises ValueError if the target is not a URL or the path of one.

    Examples
    --------
    >>> split_target(b"/v1/surfaces"), split_target(b"http://localhost/a%20b?c=d")
    (('/v1/surfaces', b'/v1/surfaces', b''), ('/a b', b'/a%20b', b'c=d'))
    """
    # Fast path.
    if target.startswith(b"/") and not (b"?" in target or b"#" in target or b"%" in target):
        return target.decode("ascii"), target, b""
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        # Without its message, which has the target: that may contain a secret, and is logged.
        raise ValueError("the target is not a URL") from None
    path = url.path or b"/"
    return unquote(path.decode("ascii")), path, url.query or b""
