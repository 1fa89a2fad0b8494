"""Thread pools are bounded and isolated, and calls are cancelled with their client."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from helpers.live import MAX_WAIT_SECONDS, wait_until
from helpers.raw_requests import connect
from helpers.running_service import running

from banditrank.engine._api_keys import create_key
from banditrank.service import _report_routes as report_routes
from banditrank.service import _thread_pools as thread_pools
from banditrank.service._http_errors import HttpError
from banditrank.service._thread_pools import ThreadPool

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
ESTIMATES = "/v1/surfaces/ads/estimates"


class Gate:
    """A function that blocks its thread until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.calls = 0

    def __call__(self, *_: object, **__: object) -> dict[str, Any]:
        self.calls += 1
        assert self.opened.wait(MAX_WAIT_SECONDS)
        return {}


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


def run_in(pool: ThreadPool, work: Callable[[], Any]) -> None:
    async def run() -> None:
        try:
            await work()
        finally:
            pool.close()

    asyncio.run(run())


async def settled(pool: ThreadPool, calls: int) -> None:
    """Wait until at most this number of calls is queued or running."""
    while pool.calls > calls:  # noqa: ASYNC110 - threads of the pool change it
        await asyncio.sleep(0.001)


def test_a_full_pool_refuses_and_recovers(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pools, "REFUSAL_SECONDS", 0.0)
    pool = ThreadPool("tests", 2, max_queued=3)

    async def fill() -> None:
        calls = [asyncio.create_task(pool.run(gate)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as refused:
            await pool.run(gate)
        assert refused.value.error_type.status == 503
        gate.opened.set()
        assert await asyncio.gather(*calls) == [{}] * 5
        await settled(pool, 0)
        assert await pool.run(lambda: "recovered") == "recovered"

    run_in(pool, fill)


def test_a_cancelled_call_does_not_run_and_frees_its_place(gate: Gate) -> None:
    pool = ThreadPool("tests", 1, max_queued=1)

    async def cancel() -> None:
        running = asyncio.create_task(pool.run(gate))
        queued = asyncio.create_task(pool.run(gate))
        await asyncio.sleep(0)
        queued.cancel()
        await asyncio.gather(queued, return_exceptions=True)
        await settled(pool, 1)
        other = asyncio.create_task(pool.run(lambda: "other"))
        await asyncio.sleep(0)
        gate.opened.set()
        assert await running == {}
        assert await other == "other"
        assert gate.calls == 1

    run_in(pool, cancel)


def test_errors_are_raised_where_the_call_is_awaited() -> None:
    pool = ThreadPool("tests", 1)

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0)

    run_in(pool, fail)


def test_a_duty_cycle_applies_after_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(thread_pools, "time", SimpleNamespace(perf_counter=lambda: now))
    pool = ThreadPool("tests", 1, duty_cycle=0.1, burst_seconds=2.0)
    pauses: list[float] = []

    class Pauses(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now
            assert timeout is not None
            pauses.append(timeout)
            now += timeout
            return False

    monkeypatch.setattr(pool, "_closing", Pauses())

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def overuse() -> None:
        for seconds in (1.0, 1.0, 60.0, 0.1, 0.1):
            await pool.run(work, seconds)
            await settled(pool, 0)

    run_in(pool, overuse)
    assert pauses == pytest.approx([0.0, 0.0, thread_pools.MAX_PAUSE_SECONDS, 0.9, 0.9])


@pytest.fixture
def slow_reports(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> Gate:
    monkeypatch.setattr(report_routes, "report_estimates", gate)
    return gate


def test_reports_do_not_delay_keys_health_or_rankings(
    slow_reports: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pools, "REFUSAL_SECONDS", 0.1)
    monkeypatch.setattr(thread_pools, "MAX_PAUSE_SECONDS", 0.1)
    with running(require_keys=True) as service:
        store = service.engine.store
        key = create_key(store, "all", ["rank", "read", "administer"])
        other = create_key(store, "other", ["rank"])

        def ask(method: str, path: str, body: object = None, key: str = key) -> httpx.Response:
            return service.ask(method, path, body, headers={"authorization": f"Bearer {key}"})

        wait_until(lambda: ask("GET", "/v1/surfaces").status_code == 200)
        assert ask("POST", "/v1/surfaces", ADS).status_code == 201
        with ThreadPoolExecutor(40) as clients:
            asked = [clients.submit(ask, "GET", ESTIMATES) for _ in range(40)]
            wait_until(lambda: sum(one.done() for one in asked) >= 20)
            refused = [one.result() for one in asked if one.done()]
            assert {one.status_code for one in refused} == {503}
            assert {one.headers["retry-after"] for one in refused} == {"1"}
            assert refused[0].json()["type"] == "urn:banditrank:problem:overloaded"
            assert slow_reports.calls == 1
            assert service.ask("GET", "/readyz").status_code == 200
            ranking = ask("POST", "/v1/surfaces/ads/rankings", {"user_type": "everybody"}).json()
            assert ask("POST", "/v1/feedback", {"ranking": ranking["id"]}).status_code == 200
            assert ask("GET", "/metrics").status_code == 200
            assert store.revoke_key(other.split("_")[1], revoked_at_ms=1)
            rank = "/v1/surfaces/ads/rankings"
            wait_until(lambda: ask("POST", rank, {"user_type": "everybody"}, key=other).status_code == 401)
            slow_reports.opened.set()
        assert {one.result().status_code for one in asked} == {200, 503}


def test_reports_are_cancelled_when_clients_disconnect(slow_reports: Gate) -> None:
    request = f"GET {ESTIMATES} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        pool = service.service.pools.reports
        clients = [connect(service) for _ in range(5)]
        for client in clients:
            client.sendall(request)
        wait_until(lambda: pool.calls == 5)
        for client in clients:
            client.close()
        wait_until(lambda: pool.calls == 1)  # the one that a thread has begun
        slow_reports.opened.set()
        wait_until(lambda: pool.calls == 0)
        assert slow_reports.calls == 1


def test_a_batch_of_late_feedback_takes_one_place_in_the_queue() -> None:
    late = {**ADS, "attribution_seconds": 1.0, "unreported": "discarded"}
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", late).status_code == 201
        types = {"user_types": ["everybody"] * 500}
        shown = service.ask("POST", "/v1/surfaces/ads/rankings/batch", types).json()["rankings"]
        live = service.engine.loaded("ads")
        assert live is not None
        wait_until(lambda: live.has_expired(service.engine.issued_ranking(shown[-1]["id"])[1]))
        batch = {"feedback": [{"ranking": one["id"]} for one in shown]}
        results = service.ask("POST", "/v1/feedback/batch", batch).json()["results"]
        assert {one["problem"]["status"] for one in results} == {410}


def test_readiness_is_checked_once_for_many_clients(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    with running() as service:
        monkeypatch.setattr(service.engine.store, "check", gate)
        with ThreadPoolExecutor(20) as clients:
            asked = [clients.submit(service.ask, "GET", "/readyz") for _ in range(20)]
            wait_until(lambda: gate.calls == 1)
            gate.opened.set()
            assert {one.result().status_code for one in asked} == {200}
        assert gate.calls <= 2
