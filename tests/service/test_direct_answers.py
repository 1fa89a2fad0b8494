"""Answers without a task are the same as in the usual way."""

import logging
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from raw_requests import (
    ADS,
    EVERYBODY,
    JSON,
    RANK,
    answers,
    feedback,
    message,
    ranked,
    watch_direct_answers,
)
from running_service import Running, running

from banditrank.engine.keys import create_key
from banditrank.engine.live_surface import LiveSurface
from banditrank.engine.surface import Surface
from banditrank.errors import StoreUnavailableError
from banditrank.service.settings import Settings
from banditrank.storage.memory import MemoryStore

SHOP = "https://shop.example"
AT_ONCE = {**ADS, "name": "at-once", "refresh_seconds": 0}


@pytest.fixture
def service() -> Iterator[Running]:
    with running(allow_origins=[SHOP]) as service:
        for surface in (ADS, AT_ONCE):
            assert service.ask("POST", "/v1/surfaces", surface).status_code == 201
        yield service


@pytest.fixture
def directly(service: Running, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_direct_answers(service, monkeypatch)


def click(service: Running) -> dict[str, Any]:
    ranking = ranked(service)
    return {"ranking": ranking["id"], "clicked": ranking["items"][0]}


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
    "reward": (422, False, lambda service: message("/v1/feedback", feedback(service, reward=0.5), JSON)),
    "not shown": (422, False, lambda service: message("/v1/feedback", feedback(service, clicked="z"), JSON)),
    "batch": (
        200,
        False,
        lambda service: message("/v1/feedback/batch", {"feedback": [feedback(service)]}, JSON),
    ),
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


def test_keys_are_asked_for_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    keys = {right: create_key(store, right, [right]) for right in ("rank", "read")}
    monkeypatch.setattr(Settings, "open_store", lambda _: store)
    with running() as service:
        service.application.engine.create(Surface("ads", items=["a", "b"], n_positions=1))
        directly = watch_direct_answers(service, monkeypatch)
        told = answers(
            service,
            message(RANK, EVERYBODY, JSON, f"authorization: Bearer {keys['rank']}"),
            message(RANK, EVERYBODY, JSON, f"authorization: Bearer {keys['read']}"),
            message(RANK, EVERYBODY, JSON),
        )
    assert [one.split()[1] for one in told] == [b"200", b"403", b"401"]
    assert directly[:2] == [True, False]


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
