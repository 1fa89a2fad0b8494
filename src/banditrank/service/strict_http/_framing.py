"""Framing of HTTP/1.1 requests: where a request ends, and what its target is, from parsed headers.

Requests are never rewritten. If the end or the host of a request is ambiguous, it is rejected: another server
in front of this one may find another end, and the bytes in between would become a request (smuggling).
"""

from urllib.parse import unquote

import httptools


def check_framing(version: str, method: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Raise ValueError unless the end and the host of a request are unambiguous.

    The parser rejects repeated and invalid lengths, and a length beside a transfer encoding.
    """
    if version not in ("1.1", "1.0") or method == b"CONNECT":
        raise ValueError(f"HTTP/{version} {method.decode()} is not supported")
    names = [name for name, _ in headers]
    if names.count(b"host") != 1 and (version == "1.1" or b"host" in names):
        raise ValueError("a request must have exactly one host")
    encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if encodings and (version == "1.0" or encodings != [b"chunked"]):
        raise ValueError("the transfer encoding must be chunked and the version HTTP/1.1")


def split_target(target: bytes) -> tuple[str, bytes, bytes]:
    """Return the decoded path, the percent-encoded path and the query string of a request target.

    Raises ValueError if the target is not a URL or the path of one.
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
