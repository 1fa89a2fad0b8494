"""HTTP/1.1 protocol over a transport in memory: framing of responses, flow control and failures."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from banditrank.service._asgi_exchange import MAX_UNREAD_BYTES, _Resumed
from banditrank.service._http_protocol import HttpProtocol
from banditrank.service._request_body import BodyReader

from banditrank.service._http_errors import HttpError

GET = b"GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n"
OLD_GET = GET.replace(b"1.1", b"1.0")
POST = b"POST /a HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": []}
END = {"type": "http.response.body", "body": b"", "more_body": False}


class MemoryTransport(asyncio.Transport):
    """Transport that collects what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_paused = self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.written.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


class Client:
    """Connection of a client to an application, in memory."""

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self.server_state = SimpleNamespace(connections=set(), tasks=set(), total_requests=0)
        config: Any = SimpleNamespace(loaded_app=application, timeout_keep_alive=75)
        self.protocol = HttpProtocol(config, self.server_state, {})  # type: ignore[arg-type]
        self.transport = MemoryTransport()
        self.protocol.connection_made(self.transport)

    async def send(self, *packets: bytes) -> bytes:
        """Send packets, and return all that was received once nothing more happens."""
        for packet in packets:
            if not self.transport.is_closed:
                self.protocol.data_received(packet)
            await settle()
        return b"".join(self.transport.written)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def received_body(receive: Any) -> bytes:
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    return bytes(body)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the target and the body of the request."""
    body = await received_body(receive)
    await send({**START, "headers": [(b"x-method", scope["method"].encode())]})
    await send({"type": "http.response.body", "body": scope["raw_path"] + b" " + body})


def responding(start: dict[str, Any], *bodies: bytes) -> Callable[..., Awaitable[None]]:
    """Return an application that sends a response in parts."""

    async def application(_scope: Any, receive: Any, send: Any) -> None:
        await received_body(receive)
        await send({**START, **start})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return application


def converse(application: Callable[..., Awaitable[None]], *packets: bytes) -> tuple[bytes, Client]:
    """Return all that an application responds to packets, and the connection."""

    async def run() -> tuple[bytes, Client]:
        client = Client(application)
        answer = await client.send(*packets)
        client.protocol.connection_lost(None)
        await settle()
        assert not client.server_state.connections
        assert not client.server_state.tasks
        return answer, client

    return asyncio.run(run())


def test_a_response_is_one_write() -> None:
    answer, client = converse(echo, POST % 2 + b"{}")
    assert len(client.transport.written) == 1
    assert answer.startswith(b"HTTP/1.1 200 OK\r\nx-method: POST\r\ndate: ")
    assert answer.endswith(b"content-length: 5\r\n\r\n/a {}")
    assert client.server_state.total_requests == 1


@pytest.mark.parametrize("request_bytes", [POST % 2 + b"{}", CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"])
def test_a_request_may_arrive_byte_by_byte(request_bytes: bytes) -> None:
    answer, _ = converse(echo, *(bytes([byte]) for byte in request_bytes + GET))
    assert answer.count(b"HTTP/1.1 200") == 2
    assert b"\r\n\r\n/a {}HTTP/1.1" in answer


def test_thousands_of_small_chunks_are_one_body() -> None:
    data = bytes(range(256)) * 16
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in data)
    answer, _ = converse(echo, CHUNKED + chunks + b"0\r\n\r\n")
    assert answer.endswith(b"/a " + data)


def test_thousands_of_headers_within_the_limit_are_accepted() -> None:
    answer, _ = converse(echo, GET[:-2] + b"x: y\r\n" * 5_000 + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("request_bytes", "start", "bodies", "end"),
    [
        (GET, {}, (b"",), b"content-length: 0\r\n\r\n"),
        (GET, {}, (b"ab", b"", b"c"), b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        (OLD_GET, {}, (b"ab", b"c"), b"connection: close\r\n\r\nabc"),
        (GET, {"headers": [(b"content-length", b"3")]}, (b"ab", b"c"), b"\r\n\r\nabc"),
        (GET, {"status": 204}, (b"",), b" GMT\r\n\r\n"),
        (GET, {"status": 304}, (b"",), b" GMT\r\n\r\n"),
        (GET.replace(b"GET", b"HEAD"), {"headers": [(b"content-length", b"3")]}, (b"abc",), b" GMT\r\n\r\n"),
        (GET.replace(b"GET", b"HEAD"), {}, (b"ab", b"c"), b" GMT\r\n\r\n"),
    ],
)
def test_the_end_of_a_response_is_marked(
    request_bytes: bytes, start: dict[str, Any], bodies: tuple[bytes, ...], end: bytes
) -> None:
    answer, client = converse(responding(start, *bodies), request_bytes)
    assert answer.endswith(end)
    assert client.transport.is_closed is (request_bytes is OLD_GET)


@pytest.mark.parametrize(
    "header",
    [(b"x-a", b"b\r\nset-cookie: c"), (b"x-a", b"b\n"), (b"x-a", b"b\rc"), (b"x-a", b"\0"), (b"x\r\ny", b"")],
)
def test_a_header_cannot_split_a_response(
    header: tuple[bytes, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    answer, client = converse(responding({"headers": [header]}, b"body"), GET)
    assert answer.startswith(b"HTTP/1.1 500")
    assert header[1] not in answer or header[1] == b""
    assert b"body" not in answer
    assert client.transport.is_closed
    assert "application failed" in caplog.messages


@pytest.mark.parametrize("bodies", [(b"ab",), (b"abcd",), (b"ab", b"cd")])
def test_a_body_must_have_its_content_length(bodies: tuple[bytes, ...]) -> None:
    answer, client = converse(responding({"headers": [(b"content-length", b"3")]}, *bodies), GET)
    assert answer.startswith(b"HTTP/1.1 500" if len(bodies) == 1 else b"HTTP/1.1 200")
    assert client.transport.is_closed


def test_an_incomplete_response_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def silent(_scope: Any, _receive: Any, send: Any) -> None:
        await send(START)

    answer, client = converse(silent, GET + GET)
    assert answer.count(b"HTTP/1.1") == 1
    assert answer.startswith(b"HTTP/1.1 500")
    assert client.transport.is_closed
    assert caplog.messages == ["application returned without a complete response"]


def test_messages_in_the_wrong_order_are_errors() -> None:
    async def wrong(_scope: Any, _receive: Any, send: Any) -> None:
        await send(END)

    answer, _ = converse(wrong, GET)
    assert answer.startswith(b"HTTP/1.1 500")


@pytest.mark.parametrize(("packets", "is_sent"), [((b"{}",), False), ((b"", b"{}"), True)])
def test_continue_is_sent_only_if_the_client_waits(packets: tuple[bytes, ...], is_sent: bool) -> None:  # noqa: FBT001
    head = (POST % 2)[:-2] + b"Expect: 100-Continue\r\n\r\n"
    answer, _ = converse(echo, head + packets[0], *packets[1:])
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200") is is_sent
    assert answer.endswith(b"/a {}")


def test_data_behind_the_last_request_is_ignored() -> None:
    answer, client = converse(echo, GET[:-2] + b"connection: close\r\n\r\n" + GET + b"nonsense\r\n", GET)
    assert answer.count(b"HTTP/1.1") == 1
    assert client.transport.is_closed


def test_a_flood_of_pipelined_requests_is_parsed_a_few_at_a_time() -> None:
    numbers: list[int] = []
    waiting: list[int] = []

    async def run() -> None:
        client = Client(application)

        async def count() -> None:
            while client.server_state.total_requests < 3_000:
                waiting.append(len(client.protocol.pipeline))
                assert client.transport.is_paused or not client.protocol.pipeline
                await asyncio.sleep(0)

        client.protocol.data_received(
            b"".join(GET.replace(b"/a", b"/%d" % number) for number in range(3_000))
        )
        await asyncio.wait_for(count(), 300)
        assert not client.transport.is_paused

    async def application(scope: Any, _receive: Any, send: Any) -> None:
        numbers.append(int(scope["path"][1:]))
        await send(START)
        await send(END)

    asyncio.run(run())
    assert numbers == list(range(3_000))
    assert 0 < max(waiting) < 200


def test_reading_pauses_until_the_application_reads_the_body() -> None:
    async def run() -> None:
        proceed = asyncio.Event()
        bodies: list[bytes] = []

        async def slow(_scope: Any, receive: Any, send: Any) -> None:
            await proceed.wait()
            bodies.append(await received_body(receive))
            await send(START)
            await send(END)

        client = Client(slow)
        n = 4 * MAX_UNREAD_BYTES
        await client.send(POST % n + b"x" * (n // 2))
        assert client.transport.is_paused
        proceed.set()
        await settle()
        assert not client.transport.is_paused
        assert (await client.send(b"x" * (n // 2))).startswith(b"HTTP/1.1 200")
        assert bodies == [b"x" * n]

    asyncio.run(run())


def test_a_client_that_does_not_read_pauses_the_application() -> None:
    async def run() -> None:
        sent: list[int] = []

        async def stream(_scope: Any, _receive: Any, send: Any) -> None:
            await send(START)
            for number in range(3):
                await send({"type": "http.response.body", "body": b"part", "more_body": True})
                sent.append(number)
                await asyncio.sleep(0)
            await send(END)

        client = Client(stream)
        client.protocol.pause_writing()
        await client.send(GET)
        assert sent == []
        client.protocol.resume_writing()
        await settle()
        assert sent == [0, 1, 2]
        client.protocol.connection_lost(None)

    asyncio.run(run())


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_disconnect_ends_the_application(is_paused: bool) -> None:  # noqa: FBT001
    async def run() -> None:
        messages: list[str] = []

        async def application(_scope: Any, receive: Any, send: Any) -> None:
            await send(START)
            await send({"type": "http.response.body", "body": b"part", "more_body": True})
            while (message := await receive())["type"] == "http.request":
                pass
            messages.append(message["type"])
            await send(END)

        client = Client(application)
        await client.send(POST % 100 + b"x")
        if is_paused:
            client.protocol.pause_writing()
        written = list(client.transport.written)
        client.protocol.connection_lost(None)
        await settle()
        assert messages == ["http.disconnect"]
        assert client.transport.written == written
        assert not client.server_state.tasks

    asyncio.run(run())


def test_a_cancelled_application_closes_the_connection() -> None:
    async def run() -> None:
        is_cancelled = asyncio.Event()

        async def endless(_scope: Any, _receive: Any, _send: Any) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # to clean up
                is_cancelled.set()
                raise

        client = Client(endless)
        await client.send(GET)
        (task,) = client.server_state.tasks
        task.cancel()
        await settle()
        assert is_cancelled.is_set()
        assert task.cancelled()
        assert client.transport.is_closed

    asyncio.run(run())


def test_shutdown_finishes_requests_in_progress() -> None:
    async def run() -> None:
        proceed = asyncio.Event()

        async def slow(_scope: Any, _receive: Any, send: Any) -> None:
            await proceed.wait()
            await send(START)
            await send(END)

        busy, idle = Client(slow), Client(slow)
        await busy.send(GET + GET)
        for client in (busy, idle):
            client.protocol.shutdown()
        assert idle.transport.is_closed
        assert not busy.transport.is_closed
        proceed.set()
        await settle()
        assert b"".join(busy.transport.written).count(b"HTTP/1.1 200") == 2
        assert busy.transport.written[-1].count(b"connection: close") == 1
        assert busy.transport.is_closed

    asyncio.run(run())


def test_what_is_resumed_in_a_task_is_a_coroutine() -> None:
    # From Python 3.12 on a task refuses generators, also those of types.coroutine.
    async def waiting() -> None:
        await asyncio.sleep(0)

    running = waiting()
    resumed = _Resumed(running, running.send(None))
    assert asyncio.iscoroutine(resumed)
    asyncio.run(resumed)


def test_a_request_that_is_cancelled_as_soon_as_it_waits_sees_it() -> None:
    raised: list[BaseException] = []

    async def waiting(_scope: Any, _receive: Any, _send: Any) -> None:
        try:
            await asyncio.sleep(60)
        except BaseException as error:
            raised.append(error)
            raise

    async def run() -> Client:
        client = Client(waiting)
        client.protocol.data_received(GET)
        while not client.server_state.tasks:  # noqa: ASYNC110 - an event would let the task run first
            await asyncio.sleep(0)
        (task,) = client.server_state.tasks
        task.cancel()
        await settle()
        return client

    client = asyncio.run(run())
    assert [type(error) for error in raised] == [asyncio.CancelledError]
    assert client.transport.is_closed
    assert not client.server_state.tasks


def test_a_response_in_place_of_100_continue_ends_the_connection() -> None:
    async def refusing(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, "status": 413})
        await send(END)

    expecting = POST.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n") % 60
    answer, client = converse(refusing, expecting, GET)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer
    assert client.transport.is_closed


def test_a_failed_head_of_a_stream_becomes_a_whole_500() -> None:
    answer, _ = converse(responding({"headers": [(b"x-a", b"b\nc")]}, b"part", b"part"), GET)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500")
    assert b"content-length: %d" % len(body) in head


def test_a_target_that_is_no_url_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        answer, _ = converse(
            echo, b"GET http://localhost:99999/?key=SECRET HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )
    assert answer.startswith(b"HTTP/1.1 400")
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("length", [b"3000000", b"0" * 5000 + b"3000000", b"9" * 5000], ids=len)
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(length: bytes) -> None:
    received = []

    async def receive() -> dict[str, Any]:
        received.append(1)
        return {"type": "http.request", "body": b"", "more_body": False}

    reader = BodyReader((), max_bytes=1_000_000, timeout_seconds=1.0)
    headers = {b"content-type": b"application/json", b"content-length": length}
    with pytest.raises(HttpError, match="at most 1,000,000 bytes"):
        asyncio.run(reader.read(headers, receive))
    assert not received
