"""The strict protocol on uvicorn: framing of responses, flow control, timeouts and limits."""

import asyncio
import contextvars
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.framing_client import Address
from helpers.hostile_clients import HOSTILE_CLIENTS, STRICT, ServerProcess, server_process
from helpers.live import wait_until
from helpers.recording_application import serving

from banditrank.service import strict_http
from banditrank.service.strict_http import _protocol as protocol

Application = Callable[..., Awaitable[None]]

GET = b"GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n"
LAST = GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
OLD_GET = GET.replace(b"1.1", b"1.0")
POST = b"POST /a HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
EXPECTING = POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-Continue\r\n\r\n")
LAST_CHUNKED = CHUNKED[:-2] + b"connection: close\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": []}
PART = {"type": "http.response.body", "body": b"part", "more_body": True}
END = {"type": "http.response.body"}
TIMEOUT_SECONDS = 60.0
MEMORY_BYTES = 1 << 21


class Service:
    """Server of an application that each test sets."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.application: Application = echo

    def connect(self, *packets: bytes) -> socket.socket:
        """Return a connection on which packets were sent."""
        connection = socket.create_connection(self.address, timeout=TIMEOUT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The server may close before it has received all.
        with suppress(OSError):
            for packet in packets:
                connection.sendall(packet)
                time.sleep(0.005)
        return connection

    def ask(self, *packets: bytes, of: Application | None = None) -> bytes:
        """Return all that is received until the server closes the connection."""
        self.application = of or echo
        with self.connect(*packets) as connection:
            return received(connection)


def received(connection: socket.socket) -> bytes:
    """Return all bytes until the other side closes."""
    parts = []
    # More may have been sent than the server has read.
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the target and the body of the request."""
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    await send({**START, "headers": [(b"X-Method", scope["method"].encode())]})
    await send({"type": "http.response.body", "body": scope["raw_path"] + b" " + body})


async def slow(scope: Any, receive: Any, send: Any) -> None:
    """Wait longer than the timeouts of the tests, and respond as `echo`."""
    await asyncio.sleep(0.2)
    await echo(scope, receive, send)


async def early(_scope: Any, _receive: Any, send: Any) -> None:
    """Respond without reading the body."""
    await send({**START, "status": 401})
    await send(END)


def responding(start: dict[str, Any], *bodies: bytes) -> Application:
    """Return an application that sends a response in parts."""

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, **start})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return application


@contextmanager
def running(**settings: Any) -> Iterator[tuple[Service, Any]]:
    service = Service(("", 0))

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await service.application(scope, receive, send)

    with serving(application, **{"lifespan": "off", **settings}) as (service.address, server):
        yield service, server


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    with running(loop=request.param) as (service, _):
        yield service


def test_it_can_be_published_by_itself(tmp_path: Path) -> None:
    shutil.copytree(Path(strict_http.__file__).parent, tmp_path / "alone")
    code = "import alone, sys; assert not {'banditrank', 'uvicorn', 'uvloop'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("request_bytes", "start", "bodies", "end"),
    [
        (LAST, {}, (b"",), b"content-length: 0\r\nconnection: close\r\n\r\n"),
        (GET + LAST, {}, (b"ab", b"", b"c"), b"\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        (OLD_GET, {}, (b"ab", b"c"), b"connection: close\r\n\r\nabc"),
        (LAST, {"headers": [(b"Content-Length", b"3")]}, (b"ab", b"c"), b"\r\n\r\nabc"),
        (LAST, {"status": 204}, (b"",), b"connection: close\r\n\r\n"),
        (LAST, {"status": 304}, (b"",), b"connection: close\r\n\r\n"),
        (GET, {"headers": [(b"connection", b"Close")]}, (b"",), b"connection: close\r\n\r\n"),
        (
            LAST,
            {"headers": [(b"transfer-encoding", b"gzip")]},
            (b"a",),
            b"length: 1\r\nconnection: close\r\n\r\na",
        ),
        (
            LAST.replace(b"GET", b"HEAD"),
            {"headers": [(b"content-length", b"3")]},
            (b"abc",),
            b"close\r\n\r\n",
        ),
        (LAST.replace(b"GET", b"HEAD"), {}, (b"ab", b"c"), b"close\r\n\r\n"),
    ],
)
def test_the_end_of_a_response_is_marked(
    service: Service, request_bytes: bytes, start: dict[str, Any], bodies: tuple[bytes, ...], end: bytes
) -> None:
    answer = service.ask(request_bytes, of=responding(start, *bodies))
    assert answer.endswith(end)
    assert b"gzip" not in answer
    assert answer.count(b"date: ") == request_bytes.count(b"/a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-a", b"b\r\nset-cookie: c"),
        (b"x-a", b"b\n"),
        (b"x-a", b"b\rc"),
        (b"x-a", b"\0"),
        (b"x\r\ny", b"z"),
    ],
)
@pytest.mark.parametrize("bodies", [(b"body",), (b"part", b"part")])
def test_a_header_cannot_split_a_response(
    service: Service, name: bytes, value: bytes, bodies: tuple[bytes, ...], caplog: pytest.LogCaptureFixture
) -> None:
    head, _, body = service.ask(GET, of=responding({"headers": [(name, value)]}, *bodies)).partition(
        b"\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 500")
    assert value not in head
    assert body == b"Internal Server Error"
    assert b"content-length: %d" % len(body) in head
    assert "application failed" in caplog.messages


@pytest.mark.parametrize(
    ("start", "bodies", "status"),
    [
        ({"headers": [(b"content-length", b"3")]}, (b"ab",), b"500"),
        ({"headers": [(b"content-length", b"3")]}, (b"abcd",), b"500"),
        ({"headers": [(b"content-length", b"3")]}, (b"ab", b"cd"), b"200"),
        ({"status": 101}, (b"",), b"500"),
        ({}, (), b"500"),
        ({"type": "http.response.body"}, (b"",), b"500"),
    ],
)
def test_an_invalid_response_closes_the_connection(
    service: Service, start: dict[str, Any], bodies: tuple[bytes, ...], status: bytes
) -> None:
    answer = service.ask(GET + GET, of=responding(start, *bodies))
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1") == 1


def test_a_cancelled_application_closes_the_connection(service: Service) -> None:
    async def cancelled(_scope: Any, _receive: Any, _send: Any) -> None:
        raise asyncio.CancelledError

    assert service.ask(GET, of=cancelled) == b""


def test_the_scope_is_complete() -> None:
    scopes = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scopes.append(scope)
            await early(scope, receive, send)
            return
        scope["state"]["store"] = "opened"
        for event in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{event}.complete"})

    with serving(application, root_path="/prefix") as (address, _):
        Service(address).ask(LAST.replace(b"/a", b"/b%20c?d=e"))
    (scope,) = scopes
    assert scope.pop("client")[0] == "127.0.0.1"
    assert scope == {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/prefix/b c",
        "raw_path": b"/prefix/b%20c",
        "query_string": b"d=e",
        "root_path": "/prefix",
        "headers": [(b"host", b"localhost"), (b"connection", b"close")],
        "server": address,
        "state": {"store": "opened"},
        "extensions": {strict_http.EXTENSION: {}},
    }


def test_context_variables_stay_in_their_request(service: Service) -> None:
    variable = contextvars.ContextVar("variable", default=0)

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        variable.set(variable.get() + 1)
        await send(START)
        await send({"type": "http.response.body", "body": b"variable is %d" % variable.get()})

    answer = service.ask(GET, GET + GET + LAST, of=application)
    assert answer.count(b"variable is 1") == 4


def test_pipelined_requests_are_answered_in_order(service: Service) -> None:
    n = 3_000
    service.application = echo
    requests = b"".join(GET.replace(b"/a", b"/%d!" % number) for number in range(n))
    with service.connect() as client:
        sender = threading.Thread(target=client.sendall, args=(requests + LAST,))
        sender.start()
        answer = received(client)
        sender.join()
    assert [int(part.partition(b"!")[0]) for part in answer.split(b"\r\n\r\n/")[1:-1]] == list(range(n))


def test_thousands_of_small_chunks_are_one_body(service: Service) -> None:
    data = bytes(range(256)) * 100
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in data)
    assert service.ask(LAST_CHUNKED + chunks + b"0\r\n\r\n").endswith(b"/a " + data)


def test_a_body_waits_until_the_application_reads_it(service: Service) -> None:
    service.application = slow
    data = bytes(range(256)) * 20_000
    with service.connect(POST % len(data)) as client:
        client.sendall(data + LAST)
        assert received(client).count(data) == 1


@pytest.mark.parametrize("packets", [(EXPECTING % 2 + b"{}",), (EXPECTING % 2, b"{}")])
def test_continue_is_sent_only_if_the_client_waits(service: Service, packets: tuple[bytes, ...]) -> None:
    answer = service.ask(*packets, LAST)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200") is (len(packets) == 2)
    assert b"/a {}" in answer


def test_a_response_in_place_of_100_continue_closes_the_connection(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_LINGER_SECONDS", 0.1)
    answer = service.ask(EXPECTING % 60, GET, of=early)
    assert answer.startswith(b"HTTP/1.1 401")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


def test_a_body_behind_its_response_is_dropped(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.ask(POST % 100_000, b"x" * 100_000, LAST, of=early).count(b"HTTP/1.1 401") == 2
    old = b"POST /a HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\n"
    assert service.ask(old, b"x" + LAST, of=early).count(b"HTTP/1.1 401") == 1
    monkeypatch.setattr(protocol, "_LINGER_SECONDS", 0.1)
    assert service.ask(POST % 2, b"x", of=early).count(b"HTTP/1.1 401") == 1


OFFERS = {
    "h2c": b"connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAA\r\n",
    "websocket": b"connection: upgrade\r\nupgrade: websocket\r\n",
}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
@pytest.mark.parametrize("packet_bytes", [7, 40, 10_000])
def test_an_upgrade_is_ignored_and_closes_the_connection(
    service: Service, offer: bytes, packet_bytes: int
) -> None:
    data = (POST % 3)[:-2] + offer + b"\r\nab"
    packets = [data[i : i + packet_bytes] for i in range(0, len(data), packet_bytes)]
    answer = service.ask(*packets, b"c" + GET)
    assert answer.endswith(b"connection: close\r\n\r\n/a abc")
    assert answer.count(b"HTTP/1.1") == 1
    assert service.ask(CHUNKED[:-2] + offer + b"\r\n0\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (GET[:-2] + (b"x-more: " + b"y" * 1000 + b"\r\n") * 80, b"431"),
        (GET[:-2] + (b"x-more: " + b"y" * 1000 + b"\r\n") * 80 + b"\r\n", b"431"),
        (GET[:-2] + b"x: y\r\n" * 5_000 + b"\r\n", b"400"),
        (CHUNKED + b"0\r\n" + (b"x-more: " + b"y" * 1000 + b"\r\n") * 80, b"431"),
        (CHUNKED + b"1;" + b"y" * 80_000, b"431"),
        (b"GET http://localhost:99999/?key=SECRET HTTP/1.1\r\nhost: localhost\r\n\r\n", b"400"),
    ],
)
def test_an_invalid_request_is_refused_after_the_responses_before_it(
    service: Service, data: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert service.ask(data).startswith(b"HTTP/1.1 " + status)
    answer = service.ask(GET + GET + data, of=slow)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"connection: close") == 1
    assert "request refused" in caplog.messages
    assert "SECRET" not in caplog.text


def test_a_large_head_during_a_stream_does_not_end_it(service: Service) -> None:
    async def stream(_scope: Any, _receive: Any, send: Any) -> None:
        await send(START)
        await send(PART)
        await asyncio.sleep(0.1)
        await send(PART)
        await send(END)

    answer = service.ask(GET, GET[:-2] + b"x-more: " + b"y" * 80_000, of=stream)
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.endswith(b"4\r\npart\r\n4\r\npart\r\n0\r\n\r\n")


def test_slow_heads_time_out(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_SECONDS", 0.2)
    assert service.ask() == b""
    assert service.ask(GET[:9]) == b""
    assert service.ask(GET + GET[:9]).count(b"HTTP/1.1 200") == 1
    assert service.ask(GET, GET[:9]).count(b"HTTP/1.1 200") == 1
    # More of the head does not extend the timeout.
    n_sent = 0
    with service.connect(GET[:9]) as client, suppress(OSError):
        while n_sent < 1_000:
            n_sent += client.send(b"a")
            time.sleep(0.05)
    assert n_sent < 1_000


def test_idle_connections_time_out() -> None:
    with running(timeout_keep_alive=1) as (service, _):
        assert service.ask(GET).count(b"HTTP/1.1 200") == 1


def test_timeouts_do_not_apply_while_the_application_responds(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_SECONDS", 0.1)
    assert service.ask(GET + LAST[:10] + LAST[10:], of=slow).count(b"HTTP/1.1 200") == 2
    assert service.ask(GET + GET[:10], of=slow).endswith(b"/a ")


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_that_does_not_read_is_disconnected(
    service: Service,
    is_stream: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    is_over = threading.Event()

    async def large(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, "headers": [(b"connection", b"close")]})
        while is_stream and not is_over.is_set():
            await send({**PART, "body": b"x" * 65536})
        await send({"type": "http.response.body", "body": b"x" * (1 << 23)})
        is_over.set()

    monkeypatch.setattr(protocol, "STALL_TIMEOUT_SECONDS", 0.1)
    caplog.set_level("INFO")
    service.application = large
    with service.connect(GET):
        wait_until(lambda: "client does not read its response" in caplog.messages)
        # The application does not block others, although it ignores the disconnect.
        assert service.ask(LAST).endswith(b"/a ")
    is_over.set()


def test_a_client_that_reads_slowly_receives_the_whole_response(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "STALL_TIMEOUT_SECONDS", 0.5)
    service.application = responding({}, b"x" * (1 << 24))
    n_received = 0
    with service.connect(LAST) as client:
        while part := client.recv(1 << 18):
            n_received += len(part)
            time.sleep(0.02)
    assert n_received > 1 << 24


@pytest.mark.parametrize("is_reading_paused", [False, True])
def test_a_disconnect_ends_the_application(service: Service, is_reading_paused: bool) -> None:  # noqa: FBT001
    ended = threading.Event()

    async def stream(_scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        if is_reading_paused:
            while (await asyncio.wait_for(receive(), 60))["type"] != "http.disconnect":
                await send(PART)
        else:
            await send(PART)
            while (await receive())["type"] != "http.disconnect":
                pass
        await send(END)
        ended.set()

    service.application = stream
    service.connect(POST % 10 + b"x").close()
    assert ended.wait(TIMEOUT_SECONDS)


def test_shutdown_finishes_requests_in_progress() -> None:
    with running() as (service, server):
        service.application = slow
        with service.connect() as idle, service.connect(GET + GET) as busy:
            server.should_exit = True
            assert received(idle) == b""
            answer = received(busy)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"connection: close") == 1


def test_shutdown_does_not_wait_for_clients_that_do_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_SHUTDOWN_STALL_SECONDS", 0.1)
    with running() as (service, _):
        service.application = responding({}, b"x" * (1 << 23))
        client = service.connect(LAST)
        assert client.recv(10) == b"HTTP/1.1 2"
        started = time.monotonic()
    client.close()
    assert time.monotonic() - started < 10


def test_connections_beyond_the_limit_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    protocol._log_refusal.cache_clear()
    with (
        running(limit_concurrency=2) as (service, _),
        service.connect(GET),
        service.connect() as second,
        service.connect() as third,
    ):
        assert received(third).startswith(b"HTTP/1.1 503")
        second.sendall(LAST)
        assert received(second).startswith(b"HTTP/1.1 200")
    assert "too many connections" in caplog.messages
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert protocol.max_connections() < soft


@pytest.fixture(scope="module")
def process() -> Iterator[ServerProcess]:
    with server_process(*STRICT, "helpers.hostile_clients:application") as process:
        yield process


@pytest.mark.parametrize("kind", HOSTILE_CLIENTS)
def test_the_memory_of_a_connection_is_bounded(process: ServerProcess, kind: str) -> None:
    n_clients = 16
    before = process.resident_bytes()
    with process.attacked(kind, n_clients):
        assert process.resident_bytes() - before <= n_clients * MEMORY_BYTES
