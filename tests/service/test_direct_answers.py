"""Answers without a task: the same as in the usual way, in order, and to whoever is still there."""

import json
import logging
import re
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from running_service import Running, running

from banditrank.engine.live_surface import LiveSurface
from banditrank.errors import StoreUnavailableError
from banditrank.service import direct_protocol

SHOP = "https://shop.example"
ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "refresh_seconds": 0.01}
AT_ONCE = {**ADS, "name": "at-once", "refresh_seconds": 0}
RANK = "/v1/surfaces/ads/rankings"
JSON = "content-type: application/json"
CHANGING = re.compile(rb'"id":"[^"]*"|"expires":"[^"]*"|"items":\[[^\]]*\]|one of ., .|date: [^\r]*\r\n')


@pytest.fixture
def service() -> Iterator[Running]:
    with running(allow_origins=[SHOP], largest_body=5000) as service:
        for surface in (ADS, AT_ONCE):
            assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
        yield service


@pytest.fixture
def directly(service: Running, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Collect, for every request to which there may be a direct answer, whether one was given."""
    taken: list[bool] = []
    find = service.application.direct_answer_to

    def find_watched(path: bytes) -> Callable[..., bool] | None:
        found = find(path)

        def answer(*request: Any) -> bool:
            taken.append(found(*request))
            return taken[-1]

        return None if found is None else answer

    monkeypatch.setattr(service.application, "direct_answer_to", find_watched)
    return taken


def connect(service: Running) -> socket.socket:
    host, port = service.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def message(path: str, body: Any, *headers: str, host: str = "localhost", method: str = "POST") -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(text)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + text


LAST = message("/healthz", b"", "connection: close", method="GET")


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
    return [in_order(one) for one in told]


def in_order(answer: bytes) -> bytes:
    """Return an answer, its headers in the order of their names, without what is not the same every time."""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = b"content-length: %d" % len(body)
    status, *headers = head.split(b"\r\n")
    headers.remove(length)
    return CHANGING.sub(b"", b"\r\n".join([status, *sorted(headers), b"", body]))


def ranked(service: Running) -> dict[str, Any]:
    return service.ask("POST", RANK, {"user_type": "everybody"}).json()


def feedback(service: Running, **said: Any) -> dict[str, Any]:
    return {"ranking": ranked(service)["id"], **said}


def click(service: Running) -> dict[str, Any]:
    ranking = ranked(service)
    return {"ranking": ranking["id"], "clicked": ranking["items"][0]}


EVERYBODY = {"user_type": "everybody"}
REQUESTS: dict[str, tuple[int, bool, Callable[[Running], bytes]]] = {
    # the status, whether it is answered directly, and the request
    "ranking": (200, True, lambda _: message(RANK, EVERYBODY, JSON)),
    "another origin": (200, True, lambda _: message(RANK, EVERYBODY, JSON, f"origin: {SHOP}")),
    "wrong origin": (200, True, lambda _: message(RANK, EVERYBODY, JSON, "origin: https://x.example")),
    "spelled out": (200, True, lambda _: message("/v1/surfaces/%61ds/rankings", EVERYBODY, JSON)),
    "charset": (200, True, lambda _: message(RANK, EVERYBODY, JSON + "; charset=utf-8")),
    "feedback": (200, True, lambda service: message("/v1/feedback", feedback(service), JSON)),
    "click": (200, True, lambda service: message("/v1/feedback", click(service), JSON)),
    "at once": (200, False, lambda _: message("/v1/surfaces/at-once/rankings", EVERYBODY, JSON)),
    "query": (200, False, lambda _: message(RANK + "?x=1", EVERYBODY, JSON)),
    "fragment": (405, False, lambda _: message("/v1/surfaces/ads#b/rankings", EVERYBODY, JSON)),
    "no such surface": (404, False, lambda _: message("/v1/surfaces/x/rankings", EVERYBODY, JSON)),
    "no such user": (422, False, lambda _: message(RANK, {"user_type": "nobody"}, JSON)),
    "no such field": (422, False, lambda _: message(RANK, {"user": "x"}, JSON)),
    "no JSON": (400, False, lambda _: message(RANK, b"{", JSON)),
    "no type": (415, False, lambda _: message(RANK, EVERYBODY)),
    "nothing": (400, False, lambda _: message(RANK, b"", JSON)),
    "host": (421, False, lambda _: message(RANK, EVERYBODY, JSON, host="shop.example")),
    "method": (405, False, lambda _: message(RANK, EVERYBODY, JSON, method="PUT")),
    "forged": (404, False, lambda _: message("/v1/feedback", {"ranking": "AAAA"}, JSON)),
    "reward": (422, False, lambda _: message("/v1/feedback", feedback(_, reward=0.5), JSON)),
    "not shown": (422, False, lambda _: message("/v1/feedback", feedback(_, clicked="z"), JSON)),
    "batch": (200, False, lambda _: message("/v1/feedback/batch", {"feedback": [feedback(_)]}, JSON)),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_direct_answers_are_the_usual_ones(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    status, is_direct, request = REQUESTS[kind]
    before = metrics(service)
    with monkeypatch.context() as usual:
        usual.setattr(service.application, "direct_answer_to", lambda _: None)
        (expected,) = answers(service, request(service))
    halfway = metrics(service)
    made = request(service)
    directly.clear()
    (got,) = answers(service, made)
    assert got == expected
    assert int(got.split()[1]) == status
    assert directly == [True] if is_direct else True not in directly
    assert difference(halfway, metrics(service)) == difference(before, halfway)


def metrics(service: Running) -> dict[str, float]:
    """Return how many requests were counted, by operation and status."""
    lines = service.ask("GET", "/metrics").text.splitlines()
    told = (line.rsplit(" ", 1) for line in lines if line.startswith("banditrank_requests_total"))
    return {name: float(number) for name, number in told}


def difference(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    changed = {name: number - before.get(name, 0.0) for name, number in after.items()}
    return {name: number for name, number in changed.items() if number and '"metrics"' not in name}


def test_what_contradicts_is_told_directly(service: Running, directly: list[bool]) -> None:
    said = feedback(service)
    shown = service.application.engine.ticket(said["ranking"])[1].shown.items[0]
    directly.clear()
    told = answers(
        service,
        message("/v1/feedback", said, JSON),
        message("/v1/feedback", said, JSON),
        message("/v1/feedback", {**said, "clicked": "abc"[shown]}, JSON),
    )
    assert [one.split()[1] for one in told] == [b"200", b"200", b"409"]
    assert b"repeated" in told[1]
    assert b"urn:banditrank:problem:contradiction" in told[2]
    assert answers(service, message("/v1/feedback", {**said, "clicked": "abc"[shown]}, JSON)) == told[2:]
    assert directly == [True, True], "the first, and the last by itself: the others wait for the first"


def test_answers_come_in_the_order_of_requests(service: Running, directly: list[bool]) -> None:
    rank, unknown = message(RANK, EVERYBODY, JSON), message(RANK, {"user_type": "x"}, JSON)
    told = answers(service, rank, message("/v1/feedback", feedback(service), JSON), rank, unknown, rank)
    assert [one.split()[1] for one in told] == [b"200", b"200", b"200", b"422", b"200"]
    assert [b"counted" in one for one in told] == [False, True, False, False, False]
    assert True in directly


@pytest.mark.parametrize("parts", [2, 3, 40])
def test_a_body_after_the_head_is_waited_for(service: Running, directly: list[bool], parts: int) -> None:
    request = message(RANK, EVERYBODY, JSON)
    size = -(-len(request) // parts)
    with connect(service) as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(request), size):
            slow.sendall(request[start : start + size])
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
        slow.sendall(request)
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
    assert directly[-1:] == [True]


def test_a_body_in_chunks_is_answered_directly(service: Running, directly: list[bool]) -> None:
    body = json.dumps(EVERYBODY).encode()
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    head = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\n{JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    (told,) = answers(service, head.encode() + chunks)
    assert told.startswith(b"HTTP/1.1 200")
    assert directly == [True]


def test_trailers_are_no_headers(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(EVERYBODY).encode()
    head = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    request = head.encode() + b"%x\r\n%b\r\n0\r\n%b\r\n\r\n" % (len(body), body, JSON.encode())
    assert answers(service, request)[0].startswith(b"HTTP/1.1 415")
    monkeypatch.setattr(service.application, "direct_answer_to", lambda _: None)
    assert answers(service, request)[0].startswith(b"HTTP/1.1 415")


def test_many_requests_at_once_do_not_hold_up_others(service: Running, directly: list[bool]) -> None:
    told = answers(service, *[message(RANK, EVERYBODY, JSON)] * 1000)
    assert [one.split()[1] for one in told] == [b"200"] * 1000
    assert len(directly) < 500, "the others are tasks, between which the loop turns to other connections"


def test_long_paths_are_not_remembered(service: Running) -> None:
    paths = [f"/{number}" + "x" * 50_000 for number in range(20)]
    tracemalloc.start()
    try:
        answers(service, message(paths[0], EVERYBODY, JSON))
        before = tracemalloc.get_traced_memory()[0]
        for path in paths:
            assert answers(service, message(path, EVERYBODY, JSON))[0].startswith(b"HTTP/1.1 404")
        assert tracemalloc.get_traced_memory()[0] - before < 500_000
    finally:
        tracemalloc.stop()


def test_a_body_that_is_slow_takes_the_usual_way(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_protocol, "_BODY_SECONDS", 0.0)
    started = threading.Event()
    read = service.application.bodies.read

    def read_watched(*arguments: Any) -> Any:
        started.set()
        return read(*arguments)

    monkeypatch.setattr(service.application.bodies, "read", read_watched)
    request = message(RANK, EVERYBODY, JSON)
    with connect(service) as slow:
        slow.sendall(request[:-5])
        assert started.wait(30)
        slow.sendall(request[-5:] + LAST)
        told = received(slow)
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"200", b"200"]
    assert directly == []


def test_a_large_body_takes_the_usual_way(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_protocol, "_LARGEST_BODY", 10)
    (told,) = answers(service, message(RANK, EVERYBODY, JSON))
    assert told.startswith(b"HTTP/1.1 200")
    assert directly == []


@pytest.mark.parametrize("more", ["connection: close", "expect: 100-continue"])
def test_what_is_not_plain_takes_the_usual_way(service: Running, directly: list[bool], more: str) -> None:
    with connect(service) as connection:
        connection.sendall(message(RANK, EVERYBODY, JSON, more) + LAST)
        assert b"HTTP/1.1 200 OK" in received(connection)
    assert directly == []


def test_a_request_of_old_takes_the_usual_way(service: Running, directly: list[bool]) -> None:
    request = message(RANK, EVERYBODY, JSON, "connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")
    with connect(service) as connection:
        connection.sendall(request)
        assert b"connection: close" in received(connection)
    assert directly == []


class Held:
    """Commits that wait until they are let go."""

    def __init__(self, service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self._go_on = threading.Event(), threading.Event()
        store = service.application.engine.store
        commit = store.commit

        def held(entries: Any, **options: Any) -> Any:
            if any(entry.outcome is not None for entry in entries):
                self.begun.set()
                assert self._go_on.wait(30)
            return commit(entries, **options)

        monkeypatch.setattr(store, "commit", held)

    def let_go(self) -> None:
        self._go_on.set()


def test_feedback_of_whoever_is_gone_is_counted(
    service: Running, directly: list[bool], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = message("/v1/feedback", feedback(service), JSON)
    directly.clear()
    held = Held(service, monkeypatch)
    with connect(service) as gone:
        gone.sendall(said)
        assert held.begun.wait(30)
    with connect(service) as other:  # answered by the loop after it has seen that the first is gone
        other.sendall(message("/healthz", b"", "connection: close", method="GET"))
        received(other)
    held.let_go()
    (told,) = answers(service, said)
    assert b"repeated" in told
    assert directly == [True, True]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_under_way_is_answered_when_the_service_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as service:
        service.ask("POST", "/v1/surfaces", ADS)
        said = message("/v1/feedback", feedback(service), JSON)
        held = Held(service, monkeypatch)
        waiting, half = connect(service), connect(service)
        waiting.sendall(said)
        assert held.begun.wait(30)
        half.sendall(message(RANK, EVERYBODY, JSON)[:-5])
        stopping = service.application.stopping
        threading.Timer(0.0, lambda: stopping_then(stopping, half, held)).start()
    with waiting, half:
        told = received(waiting)
        assert told.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in told
        assert b"counted" in told
        assert received(half).startswith(b"HTTP/1.1 200")


def stopping_then(stopping: Any, half: socket.socket, held: Held) -> None:
    """Once the service stops, send the rest of a request, and let commits go on."""
    while not stopping.is_set():
        threading.Event().wait(0.01)
    half.sendall(message(RANK, EVERYBODY, JSON)[-5:])
    held.let_go()


@pytest.mark.parametrize(
    ("error", "status"), [(StoreUnavailableError("it is down"), b"503"), (ZeroDivisionError("a bug"), b"500")]
)
def test_what_goes_wrong_later_is_told(
    service: Running,
    directly: list[bool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    status: bytes,
) -> None:
    said = message("/v1/feedback", feedback(service), JSON)
    directly.clear()

    def fail(*_: Any) -> str:
        raise error

    monkeypatch.setattr(LiveSurface, "told", fail)
    with caplog.at_level(logging.INFO):
        (told,) = answers(service, said)
    assert told.split()[1] == status
    assert b"retry-after" in told or status == b"500"
    assert directly == [True]
    mistakes = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert mistakes == ([error] if status == b"500" else [])
    assert [record.status for record in caplog.records if record.message == "request"] == [int(status)]


def test_nonsense_after_a_request_is_refused_after_its_answer(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(message(RANK, EVERYBODY, JSON) + b"\x16\x03\x01 nonsense\r\n\r\n")
        told = received(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", told) == [b"200", b"400"]


def test_nonsense_in_a_body_is_refused(service: Running, directly: list[bool]) -> None:
    head = f"POST {RANK} HTTP/1.1\r\nhost: localhost\r\n{JSON}\r\ntransfer-encoding: chunked\r\n\r\n"
    wrong_path = head.replace(RANK, "/v1/surfaces/ä/rankings")
    for nonsense in (head + "zz\r\n", head + "5\r\n{", wrong_path + "0\r\n\r\n"):
        with connect(service) as connection:
            connection.sendall(nonsense.encode("latin-1"))
            if nonsense.endswith("{"):
                connection.sendall(b"xxxxxxx\r\n")
            assert received(connection).startswith(b"HTTP/1.1 400")
    assert directly == []
