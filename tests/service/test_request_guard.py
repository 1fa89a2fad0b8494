"""The guard of stock servers: ambiguous requests are refused, and their connections are closed."""

import asyncio
from typing import Any

import pytest

from banditrank.service._request_guard import RequestGuard
from banditrank.service.strict_http import EXTENSION

Headers = list[tuple[bytes, bytes]]

HOST = (b"host", b"localhost")
CHUNKED = (b"transfer-encoding", b"chunked")
LENGTH = (b"content-length", b"2")
UPGRADE = (b"upgrade", b"h2c")
ORDINARY = {"type": "http", "method": "POST", "http_version": "1.1", "path": "/a", "query_string": b""}


def pass_through(headers: Headers, **scope: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return what the guard sends to the client of a request, and the scopes of the application."""
    sent: list[dict[str, Any]] = []
    scopes = []

    async def application(scope: Any, _receive: Any, send: Any) -> None:
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-a", b"b")]})
        await send({"type": "http.response.body", "body": b"body"})

    async def send(message: Any) -> None:
        sent.append(message)

    guard = RequestGuard(application)
    asyncio.run(guard({**ORDINARY, "headers": headers, **scope}, None, send))
    return sent, scopes


@pytest.mark.parametrize(
    ("headers", "scope"),
    [
        ([HOST], {"method": "CONNECT"}),
        ([HOST], {"method": "CONNECT", "http_version": "2"}),
        ([HOST], {"http_version": "2.0"}),
        ([HOST], {"http_version": "0.9"}),
        ([], {}),
        ([HOST, HOST], {}),
        ([HOST, HOST], {"http_version": "1.0"}),
        ([HOST, (b"transfer-encoding", b"gzip, chunked")], {}),
        ([HOST, (b"transfer-encoding", b"")], {}),
        ([HOST, CHUNKED, CHUNKED], {}),
        ([HOST, CHUNKED, LENGTH], {}),
        ([HOST, CHUNKED], {"http_version": "1.0"}),
        ([HOST, LENGTH, LENGTH], {}),
        ([HOST, UPGRADE, LENGTH], {}),
        ([HOST, UPGRADE, CHUNKED], {}),
        ([HOST, *[(b"x-more", b"y" * 1000)] * 66], {}),
        ([HOST], {"raw_path": b"/" + b"a" * 70_000}),
        ([HOST], {"query_string": b"a" * 70_000}),
    ],
)
def test_ambiguous_requests_are_refused(headers: Headers, scope: dict[str, Any]) -> None:
    (start, body), scopes = pass_through(headers, **scope)
    assert scopes == []
    assert start["status"] == 400
    assert (b"connection", b"close") in start["headers"]
    assert body == {"type": "http.response.body"}


@pytest.mark.parametrize(
    ("headers", "scope"),
    [
        ([HOST, LENGTH], {}),
        ([HOST, (b"transfer-encoding", b"Chunked")], {}),
        ([], {"http_version": "1.0"}),
        ([HOST], {"http_version": "1"}),
        ([], {"http_version": "2"}),
        ([HOST, LENGTH, UPGRADE], {"http_version": "3"}),
        ([HOST, CHUNKED, LENGTH], {"extensions": {EXTENSION: {}}}),
        ([], {"type": "websocket"}),
    ],
)
def test_other_requests_pass(headers: Headers, scope: dict[str, Any]) -> None:
    sent, (seen,) = pass_through(headers, **scope)
    assert sent[0]["status"] == 200
    assert seen["headers"] == headers
    # Nothing that a server appends to its list later reaches the application.
    assert (seen["headers"] is headers) is (scope.get("type") == "websocket" or "extensions" in scope)


def test_the_connection_closes_after_an_upgrade_without_a_body() -> None:
    for headers in ([HOST, UPGRADE], [HOST, UPGRADE, (b"content-length", b"0")]):
        sent, _ = pass_through(headers)
        assert sent[0]["headers"] == [(b"x-a", b"b"), (b"connection", b"close")]
        assert sent[1]["body"] == b"body"
