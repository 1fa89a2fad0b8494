"""Requests byte by byte, and what comes back to them."""

import json
import re
import socket
from typing import Any

from running_service import Running

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "refresh_seconds": 0.01}
RANK = "/v1/surfaces/ads/rankings"
EVERYBODY = {"user_type": "everybody"}
JSON = "content-type: application/json"
CHANGING = re.compile(rb'"id":"[^"]*"|"expires":"[^"]*"|"items":\[[^\]]*\]|one of ., .|date: [^\r]*\r\n')


def connect(service: Running) -> socket.socket:
    """Return a connection to a service."""
    host, port = service.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def message(path: str, body: Any, *headers: str, host: str = "localhost", method: str = "POST") -> bytes:
    """Return a request as it is sent; a body that is not bytes as JSON."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(text)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + text


LAST = message("/healthz", b"", "connection: close", method="GET")
"""A request after which the connection is closed."""


def received(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def answers(service: Running, *messages: bytes) -> list[bytes]:
    """Return the answers to requests that are sent at once, without what changes from one to the next."""
    with connect(service) as connection:
        connection.sendall(b"".join(messages) + LAST)
        told = [b"HTTP/1.1" + one for one in received(connection).split(b"HTTP/1.1")[1:]]
    assert told.pop().startswith(b"HTTP/1.1 200")
    return [_in_order(one) for one in told]


def _in_order(answer: bytes) -> bytes:
    """Return an answer, its headers in the order of their names, without what is not the same every time."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    headers.remove(b"content-length: %d" % len(body))
    return CHANGING.sub(b"", b"\r\n".join([status, *sorted(headers), b"", body]))


def ranked(service: Running) -> dict[str, Any]:
    """Return a ranking of `ADS`."""
    return service.ask("POST", RANK, EVERYBODY).json()


def feedback(service: Running, **said: Any) -> dict[str, Any]:
    """Return feedback to a ranking, without a click unless it is said otherwise."""
    return {"ranking": ranked(service)["id"], **said}
