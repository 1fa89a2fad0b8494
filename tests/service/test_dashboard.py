"""Routes of the dashboard: documents, time series, event streams and their rights."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest
from helpers.live import MAX_WAIT_SECONDS, wait_until
from helpers.running_service import Running, running

from banditrank.dashboard._assessment import Assessment
from banditrank.dashboard._document_schemas import CountsDocument, HealthCheckDocument
from banditrank.dashboard._documents import UNKNOWN_ESTIMATES
from banditrank.dashboard._duty_cycle import DutyCycle
from banditrank.engine._api_keys import create_key
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.service import _dashboard_cache as dashboard_cache
from banditrank.service import _dashboard_routes as dashboard_routes
from banditrank.service import strict_http
from banditrank.service._dashboard_cache import DashboardCache, EncodedDashboard

ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2, "user_types": ["new", "old"]}
EVENTS = "/v1/surfaces/ads/events"


@pytest.fixture(autouse=True)
def _fast_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make streams look for changes ten times as often."""
    for name in ("STATE_SECONDS", "HEARTBEAT_SECONDS", "_TICK_SECONDS"):
        monkeypatch.setattr(dashboard_routes, name, getattr(dashboard_routes, name) / 10)
    monkeypatch.setattr(dashboard_cache, "_MAX_SERIES_AGE_SECONDS", 0.09)
    monkeypatch.setattr(dashboard_cache, "_ESTIMATES_WAIT_SECONDS", MAX_WAIT_SECONDS)
    monkeypatch.setattr(strict_http._protocol, "_SHUTDOWN_STALL_SECONDS", 0.2)


@pytest.fixture
def service() -> Iterator[Running]:
    with running(bucket_seconds=0.1, max_streams=2) as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        yield service


def play(service: Running, rounds: int) -> None:
    for number in range(rounds):
        body = {"user_type": ADS["user_types"][number % 2]}
        ranking = service.ask("POST", "/v1/surfaces/ads/rankings", body).json()
        clicked = "a" if "a" in ranking["items"] else None
        service.ask("POST", "/v1/feedback", {"ranking": ranking["id"], "clicked": clicked})


class Listening:
    """A client that reads a stream in a thread."""

    def __init__(self, service: Running, **options: object) -> None:
        self.events: list[tuple[str, dict]] = []
        self.signs = 0
        self.ended = threading.Event()
        self.begun = threading.Event()
        self.status = 0
        self._leave = False
        self._address, self._options = service.address + EVENTS, options
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self) -> None:
        options = {"timeout": MAX_WAIT_SECONDS, "verify": False, **self._options}  # without TLS
        with httpx.stream("GET", self._address, **options) as response:
            self.status, self.headers = response.status_code, response.headers
            self.begun.set()
            kind = ""
            for line in response.iter_lines():
                if self._leave:
                    break
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    self.events.append((kind, json.loads(line.removeprefix("data: "))))
                elif line.startswith(": alive"):
                    self.signs += 1
        self.ended.set()

    def of(self, kind: str) -> list[dict]:
        return [document for one, document in self.events if one == kind]

    def leave(self) -> None:
        self._leave = True
        self.thread.join(MAX_WAIT_SECONDS)


def test_the_dashboard_document_agrees_with_the_reports(service: Running) -> None:
    play(service, 40)
    document = service.ask("GET", "/v1/surfaces/ads/dashboard").json()
    estimates = service.ask("GET", "/v1/surfaces/ads/estimates").json()
    equality = service.ask("GET", "/v1/surfaces/ads/equality").json()
    assert document["version"] == estimates["version"]
    for i, report in enumerate(estimates["user_types"]):
        assert [one["estimate"] for one in document["items"][i]] == [
            one["estimate"] for one in report["items"]
        ]
        assert [one["low"] for one in document["positions"][i]] == [one["low"] for one in report["positions"]]
    assert document["treatments"][1]["value"] == [one["equal_value"] for one in equality["user_types"]]
    assert document["treatments"][0]["value"] == [one["personalized_value"] for one in equality["user_types"]]
    assert [check["name"] for check in document["health"]][:2] == ["Counts age", "Store sync"]
    assert {check["status"] for check in document["health"]} <= {"ok", "warn", "bad"}
    explained = service.ask("GET", f"/v1/rankings/{document['latest_rankings'][0]['id']}").json()
    assert explained["items"] == [
        ADS["items"][number] for number in document["latest_rankings"][0]["ranking"]
    ]


def check(name: str, figure: str) -> HealthCheckDocument:
    return {
        "name": name,
        "value": figure,
        "description": "",
        "limit": "none",
        "status": "ok",
        "last_hour": [],
    }


def test_the_etag_changes_only_with_the_content(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/v1/surfaces/ads/dashboard"
    health = [check("Store sync", "0.1 s"), check("Commits", "48.3 per second")]
    monkeypatch.setattr(service.service.health_monitor, "checks", lambda _: health)

    def made_again() -> None:
        for cache in service.service.dashboard_cache._caches.values():
            cache.duty_cycle = DutyCycle(1.0)
            cache.counts_read_at = 0.0

    play(service, 4)
    wait_until(lambda: service.engine.surface("ads").rounds == 4)
    first = service.ask("GET", path)
    tag = first.headers["etag"]
    made_again()
    health[0] = check("Store sync", "0.2 s")  # ages have grown
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = service.ask("GET", path, headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert service.ask("GET", path, headers={"if-none-match": '"other"'}).status_code == 200
    made_again()
    health[1] = check("Commits", "0.0 per second")  # a figure that is none has changed
    changed = service.ask("GET", path, headers={"if-none-match": tag})
    assert (changed.status_code, changed.json()["health"]) == (200, health)
    tag = changed.headers["etag"]
    play(service, 1)
    wait_until(lambda: service.ask("GET", path, headers={"if-none-match": tag}).status_code == 200)


def test_the_series_grows_and_can_start_at_a_time(service: Running) -> None:
    assert service.ask("GET", "/v1/surfaces/ads/series").json()["visits"] == []
    play(service, 6)
    series: dict = {}

    def has_all_visits() -> bool:
        series.update(service.ask("GET", "/v1/surfaces/ads/series").json())
        return sum(map(sum, series["visits"])) == 6

    wait_until(has_all_visits)
    end = datetime.fromisoformat(series["start"]).timestamp() + series["bucket_seconds"] * len(
        series["visits"]
    )
    since = datetime.fromtimestamp(end, UTC).isoformat().replace("+00:00", "Z")
    later = service.ask("GET", f"/v1/surfaces/ads/series?since={since}").json()
    assert sum(map(sum, later["visits"])) == 0
    assert datetime.fromisoformat(later["start"]).timestamp() == pytest.approx(end, abs=0.002)


@pytest.mark.parametrize("since", ["yesterday", "2026-11-16T12:00:00", ""])
def test_an_invalid_time_is_refused(service: Running, since: str) -> None:
    refused = service.ask("GET", f"/v1/surfaces/ads/series?since={since}")
    assert refused.status_code == 422
    assert "since" in refused.json()["detail"]


def test_a_stream_starts_at_once_and_ends_when_the_client_disconnects(service: Running) -> None:
    client = Listening(service)
    wait_until(lambda: client.of("state"))
    assert client.headers["content-type"] == "text/event-stream"
    assert client.headers["cache-control"] == "no-store"
    assert client.of("state")[0]["rounds"] == 0
    play(service, 5)
    wait_until(lambda: client.of("state")[-1]["rounds"] == 5)
    wait_until(lambda: sum(sum(map(sum, one["visits"])) for one in client.of("series")) == 5)
    wait_until(lambda: client.signs >= 2)
    assert service.service.n_open_streams == 1
    client.leave()
    wait_until(lambda: service.service.n_open_streams == 0)


def test_a_state_event_is_repeated_if_only_ages_change(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.service.health_monitor, "checks", lambda _: [])
    monkeypatch.setattr("banditrank.service._dashboard_routes.MAX_STATE_SECONDS", 0.0)
    client = Listening(service)
    wait_until(lambda: len(client.of("state")) >= 3)
    wait_until(lambda: client.of("state")[0]["as_of"] < client.of("state")[-1]["as_of"])
    client.leave()


def test_a_stream_and_a_reload_return_the_same_buckets(service: Running) -> None:
    client = Listening(service)
    play(service, 5)
    wait_until(lambda: sum(sum(map(sum, one["visits"])) for one in client.of("series")) == 5)
    events = client.of("series")
    client.leave()
    whole = service.ask("GET", "/v1/surfaces/ads/series").json()
    begin = datetime.fromisoformat(whole["start"]).timestamp()
    for one in events:
        at = round((datetime.fromisoformat(one["start"]).timestamp() - begin) / whole["bucket_seconds"])
        for name in set(one) - {"start", "bucket_seconds", "events"}:
            assert one[name] == whole[name][at : at + len(one[name])]


def test_buckets_are_sent_once_and_again_after_they_were_merged(service: Running) -> None:
    client = Listening(service)
    play(service, 3)
    wait_until(lambda: len(client.of("series")) >= 3)
    first, *others = client.of("series")
    end = datetime.fromisoformat(first["start"]).timestamp() + first["bucket_seconds"] * len(first["visits"])
    for one in others:
        assert datetime.fromisoformat(one["start"]).timestamp() == pytest.approx(end, abs=0.002)
        end += one["bucket_seconds"] * len(one["visits"])
    monitor = service.service.monitors.of(service.engine.surface("ads"))
    with monitor._lock:
        monitor._series.fold()
        monitor._series._buckets.widen(int((time.time() + 60) * 1000))

    def wider_visits() -> int:
        wider = [one for one in client.of("series") if one["bucket_seconds"] > 0.1]
        return sum(sum(map(sum, one["visits"])) for one in wider)

    wait_until(lambda: wider_visits() >= 3)  # once wider buckets are closed
    assert wider_visits() == 3
    client.leave()


def test_streams_end_when_the_service_stops() -> None:
    with running(max_stream_seconds=3600.0) as service:
        service.ask("POST", "/v1/surfaces", ADS)
        clients = [Listening(service) for _ in range(3)]
        wait_until(lambda: all(client.of("state") for client in clients))
    # uvicorn waits, and cuts off what has not ended by then: the client would see that
    for client in clients:
        client.thread.join(MAX_WAIT_SECONDS)
        assert client.ended.is_set()


def test_a_client_that_does_not_read_does_not_delay_shutdown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def endless(*_: object) -> EncodedDashboard:
        return EncodedDashboard(b"x" * 100_000_000, b"{}", b"tag", b"tag")

    monkeypatch.setattr(DashboardCache, "dashboard", endless)
    with socket.socket() as client, running() as service:
        service.ask("POST", "/v1/surfaces", ADS)
        host, port = service.address.removeprefix("http://").split(":")
        client.connect((host, int(port)))
        client.sendall(f"GET {EVENTS} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        assert client.recv(15) == b"HTTP/1.1 200 OK"  # and no more
    assert not [record for record in caplog.records if "Cancel" in record.message]  # uvicorn gave up waiting


def test_a_stream_ends_after_its_maximum_duration() -> None:
    with running(max_stream_seconds=0.05) as service:
        service.ask("POST", "/v1/surfaces", ADS)
        client = Listening(service)
        client.thread.join(MAX_WAIT_SECONDS)
        first, *others = [kind for kind, _ in client.events]
        assert first == "state"
        assert set(others) <= {"series"}  # on a busy machine a bucket may close before
        assert service.service.n_open_streams == 0


def test_a_stream_ends_with_its_surface(service: Running) -> None:
    client = Listening(service)
    wait_until(lambda: client.of("state"))
    assert service.ask("DELETE", "/v1/surfaces/ads").status_code == 204
    client.thread.join(MAX_WAIT_SECONDS)
    assert client.ended.is_set()
    assert service.ask("GET", EVENTS).status_code == 404


def test_the_number_of_streams_is_limited(service: Running) -> None:
    clients = [Listening(service) for _ in range(2)]
    wait_until(lambda: all(client.begun.is_set() for client in clients))
    refused = service.ask("GET", EVENTS)
    assert refused.status_code == 503
    assert refused.json()["type"].endswith("too-many-streams")
    assert refused.headers["retry-after"] == "1"
    clients[0].leave()
    wait_until(lambda: service.service.n_open_streams == 1)
    another = Listening(service)
    wait_until(lambda: another.of("state"))
    for client in (another, clients[1]):
        client.leave()


def test_a_head_request_opens_no_stream(service: Running) -> None:
    asked = service.ask("HEAD", EVENTS)
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-type"] == "text/event-stream"
    assert service.service.n_open_streams == 0


def test_dashboard_routes_need_the_right_to_read() -> None:
    with running(require_keys=True) as service:
        store = service.engine.store
        keys = {right: create_key(store, right, [right]) for right in ("rank", "read", "administer")}

        def asked(path: str, right: str | None = None) -> httpx.Response:
            headers = {} if right is None else {"authorization": f"Bearer {keys[right]}"}
            return service.ask("GET", path, headers=headers)

        wait_until(lambda: asked("/v1/surfaces", "read").status_code == 200)
        headers = {"authorization": f"Bearer {keys['administer']}"}
        assert service.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
        for path in ("/v1/surfaces/ads/dashboard", "/v1/surfaces/ads/series", EVENTS):
            assert asked(path).status_code == 401
            assert asked(path, "rank").status_code == 403
        assert asked("/v1/surfaces/ads/dashboard", "read").status_code == 200
        unlimited = {"surfaces": None, "expires_at": None}
        assert asked("/v1/access").json() == {"keys_required": True, "rights": [], **unlimited}
        assert asked("/v1/access", "rank").json() == {"keys_required": True, "rights": ["rank"], **unlimited}
        keys["wrong"] = "br_0_wrong"
        assert asked("/v1/access", "wrong").json()["rights"] == []
        client = Listening(service, headers={"authorization": f"Bearer {keys['read']}"})
        wait_until(lambda: client.of("state"))
        store.revoke_key(keys["read"].split("_")[1], revoked_at_ms=1)
        client.thread.join(MAX_WAIT_SECONDS)
        assert client.ended.is_set()


def test_access_without_keys_is_unlimited(service: Running) -> None:
    access = service.ask("GET", "/v1/access").json()
    assert not access["keys_required"]
    assert access["rights"] == ["rank", "read", "administer"]
    assert access["surfaces"] is None


@contextmanager
def slow_estimates(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yield an event without which no estimates are computed; documents do not wait for them meanwhile."""
    may_end = threading.Event()
    assess = dashboard_cache.assess

    def wait_and_assess(known: SurfaceCounts) -> Assessment:
        may_end.wait(MAX_WAIT_SECONDS)
        return assess(known)

    with monkeypatch.context() as patched:
        patched.setattr(dashboard_cache, "assess", wait_and_assess)
        patched.setattr(dashboard_cache, "_ESTIMATES_WAIT_SECONDS", 0.0)
        patched.setattr(dashboard_cache, "_MAX_COUNTS_AGE_SECONDS", 0.0)
        try:
            yield may_end
        finally:
            may_end.set()


def test_counts_do_not_wait_for_estimates(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 13: while estimates are computed or compiled, documents and streams have the latest counts."""

    def dashboard() -> dict:
        return service.ask("GET", "/v1/surfaces/ads/dashboard").json()

    with slow_estimates(monkeypatch) as may_end:
        play(service, 1)
        client = Listening(service)
        wait_until(lambda: client.of("state"))
        play(service, 7)
        wait_until(lambda: dashboard()["rounds"] == 8)
        document = dashboard()
        assert sum(document["last_hour"]["visits"]) == 8
        assert document["estimated_from"] is None
        assert {document[name] for name in UNKNOWN_ESTIMATES} == {None}
        wait_until(lambda: client.of("counts") and client.of("counts")[-1]["rounds"] == 8)
        assert set(client.of("counts")[0]) == set(CountsDocument.__annotations__)
        may_end.set()
        wait_until(lambda: dashboard()["estimated_from"] is not None)
        wait_until(lambda: client.of("state")[-1]["items"] is not None)
    wait_until(lambda: dashboard()["estimated_from"]["rounds"] == 8)
    client.leave()


def test_old_estimates_say_what_they_are_of(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 13: a document has the latest estimates with their counts, unless the surface was changed."""

    def dashboard() -> dict:
        return service.ask("GET", "/v1/surfaces/ads/dashboard").json()

    play(service, 3)
    wait_until(lambda: (dashboard()["estimated_from"] or {}).get("rounds") == 3)
    with slow_estimates(monkeypatch):
        play(service, 4)
        wait_until(lambda: dashboard()["rounds"] == 7)
        old = dashboard()
        assert (old["version"], old["estimated_from"]["version"]) == (7, 3)
        assert old["estimated_from"]["at"] <= old["as_of"]
        assert sum(map(sum, (row[0] for row in old["displays"]))) == 3
        service.ask("POST", "/v1/surfaces/ads/items", {"items": ["d"]})
        changed = dashboard()
        assert changed["surface"]["items"][-1] == "d"
        assert changed["estimated_from"] is None
        assert changed["items"] is None
    wait_until(lambda: len((dashboard()["items"] or [[]])[0]) == 4)


def test_ten_dashboards_share_one_assessment(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    assess = dashboard_cache.assess
    monkeypatch.setattr(dashboard_cache, "assess", lambda known: made.append(known.version) or assess(known))
    play(service, 3)
    asking = [
        threading.Thread(target=service.ask, args=["GET", "/v1/surfaces/ads/dashboard"]) for _ in range(10)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert made == [3]
