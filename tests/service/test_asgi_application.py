"""The service as an ordinary ASGI application: mounted, under other servers, and with others' middleware."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import sentry_sdk
from fastapi import FastAPI
from helpers.servers import free_port
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.asgi import SentryAsgiMiddleware
from sentry_sdk.transport import Transport
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from banditrank.engine._engine import Engine
from banditrank.errors import InvalidInputError
from banditrank.service import Settings, create_app, lifespan

MAX_WAIT_SECONDS = 300.0
ADS = {"name": "ads", "items": ["ad 1", "ad-3"], "n_positions": 2}
HOST = """
from starlette.applications import Starlette
from starlette.routing import Mount

from banditrank.service import Settings, create_app, lifespan

mounted = create_app(Settings(store="sqlite:shop.db", max_stream_seconds=0.1))
host = Starlette(routes=[Mount("/rank", mounted)], lifespan=lifespan(mounted))
"""
SERVERS = {
    "uvicorn": ["uvicorn", "--port", "{port}", "{app}"],
    "uvicorn-h11": ["uvicorn", "--http", "h11", "--port", "{port}", "{app}"],
    "granian": ["granian", "--interface", "asgi", "--port", "{port}", "{app}"],
    "hypercorn": ["hypercorn", "--bind", "127.0.0.1:{port}", "{app}"],
}


def check_all_parts(client: httpx.Client, prefix: str) -> None:
    """Check that the HTTP API, the pages with what they load, and event streams work under a prefix."""
    assert client.post(f"{prefix}/v1/surfaces", json=ADS).status_code == 201
    shown = client.post(f"{prefix}/v1/surfaces/ads/rankings", json={"user_type": "everybody"}).json()
    feedback = {"ranking": shown["id"], "clicked": shown["items"][0]}
    assert client.post(f"{prefix}/v1/feedback", json=feedback).json() == {"status": "counted"}
    assert client.post(f"{prefix}/v1/surfaces/ads/items", json={"items": ["ad/2"]}).status_code == 200
    assert client.delete(f"{prefix}/v1/surfaces/ads/items/ad%2F2").status_code == 200
    items = client.get(f"{prefix}/v1/surfaces/ads").json()["items"]
    assert [item["name"] for item in items if item["retired"]] == ["ad/2"]
    missing = client.get(f"{prefix}/v1/nowhere")
    assert (missing.status_code, missing.json()["request_id"]) == (404, missing.headers["x-request-id"])
    for page in ("/", "/surfaces/ads", "/docs"):
        found = client.get(prefix + page)
        assert found.headers["content-type"] == "text/html; charset=utf-8"
        for name in re.findall(r'"((?:\.\./)?assets/[^"]+)"', found.text):
            url = httpx.URL(f"http://localhost{prefix}{page}").join(name)
            asset = client.get(url.path)
            assert asset.status_code == 200, url
        again = client.get(prefix + page, headers={"if-none-match": found.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    head = client.head(f"{prefix}/v1/surfaces/ads")
    assert (head.status_code, head.content) == (200, b"")
    with client.stream("GET", f"{prefix}/v1/surfaces/ads/events") as events:
        assert "event: state" in list(events.iter_lines())


@contextmanager
def serving(directory: Path, server: str) -> Iterator[httpx.Client]:
    (directory / "shop.py").write_text(HOST)
    port = free_port()
    command = [each.format(port=port, app="shop:host") for each in SERVERS[server]]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", *command], cwd=directory, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=MAX_WAIT_SECONDS) as client:
            until = time.monotonic() + MAX_WAIT_SECONDS
            while time.monotonic() < until:
                assert process.poll() is None, (directory / "log").read_text()
                try:
                    client.get("/")
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield client
        process.send_signal(signal.SIGTERM)
        process.wait(MAX_WAIT_SECONDS)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("server", SERVERS)
def test_it_runs_under_other_servers(tmp_path: Path, server: str) -> None:
    with serving(tmp_path, server) as client:
        check_all_parts(client, "/rank")
    again = create_app(Settings(store=f"sqlite:{tmp_path / 'shop.db'}"))
    with TestClient(again, base_url="http://localhost") as client:
        assert client.get("/v1/surfaces/ads").json()["rounds"] == 1, "all was committed at the end"


def fastapi_host(mounted: Starlette) -> FastAPI:
    host = FastAPI(lifespan=lifespan(mounted))
    host.mount("/rank", mounted)
    return host


def starlette_host(mounted: Starlette) -> Starlette:
    """Return an application with a lifespan of its own."""

    @asynccontextmanager
    async def run(host: Starlette) -> Any:
        async with lifespan(mounted)(host):
            yield {"own": "state"}

    async def own(request: Any) -> PlainTextResponse:
        return PlainTextResponse(request.state.own)

    return Starlette(routes=[Route("/own", own), Mount("/rank", mounted)], lifespan=run)


@pytest.mark.parametrize("mount", [fastapi_host, starlette_host])
def test_it_is_mounted_under_a_prefix(mount: Callable[[Starlette], Any]) -> None:
    host = mount(create_app(Settings(store="memory:", max_stream_seconds=0.1)))
    for _ in range(2):
        with TestClient(host, base_url="http://localhost") as client:
            check_all_parts(client, "/rank")
            if mount is starlette_host:
                assert client.get("/own").text == "state"


@pytest.mark.parametrize("prefix", ["/rank", "/my rank", "/r/änk"])
def test_parameters_may_be_encoded_behind_any_prefix(prefix: str) -> None:
    ranking = create_app(Settings(store="memory:"))
    host = Starlette(routes=[Mount(prefix, ranking)], lifespan=lifespan(ranking))
    with TestClient(host, base_url="http://localhost") as client:
        assert client.post(f"{prefix}/v1/surfaces", json=ADS).status_code == 201
        assert client.get(f"{prefix}/v1/surfaces/a%64s").json()["name"] == "ads"
        assert client.get(f"{prefix}%2fx/v1/surfaces").status_code == 404, "the host sees another path"
    with TestClient(ranking, base_url="http://localhost", root_path=prefix) as client:
        assert client.post("/v1/surfaces", json=ADS).status_code == 201
        assert client.get("/v1/surfaces/a%64s").json()["name"] == "ads"


def test_paths_of_a_mounted_service_have_its_prefix() -> None:
    with TestClient(
        starlette_host(create_app(Settings(store="memory:"))), base_url="http://localhost"
    ) as client:
        assert client.get("/rank/openapi.json").json()["servers"] == [{"url": "/rank"}]
        assert "the API is at /rank/v1" in client.get("/rank/nowhere").json()["detail"]


def test_a_host_keeps_its_state() -> None:
    async def own(scope: Any, receive: Any, send: Any) -> None:
        scope["state"] = {"request_id": "own", "operation": "own"}
        await mounted(scope, receive, send)
        assert {name: scope["state"][name] for name in ("request_id", "operation")} == dict.fromkeys(
            ("request_id", "operation"), "own"
        )

    mounted = create_app(Settings(store="memory:"))
    host = Starlette(routes=[Mount("/rank", own)], lifespan=lifespan(mounted))
    with TestClient(host, base_url="http://localhost") as client:
        assert client.get("/rank/v1/surfaces").status_code == 200


def test_a_service_runs_once_at_a_time() -> None:
    ranking = create_app(Settings(store="memory:"))
    with (
        TestClient(ranking, base_url="http://localhost") as client,
        pytest.raises(RuntimeError, match="the service runs already"),
        TestClient(ranking),
    ):
        pass
    with TestClient(ranking, base_url="http://localhost") as client:
        assert client.get("/healthz").status_code == 200


def test_a_host_without_the_lifespan_is_an_error() -> None:
    host = Starlette(routes=[Mount("/rank", create_app(Settings(store="memory:")))])
    with (
        TestClient(host, base_url="http://localhost") as client,
        pytest.raises(RuntimeError, match="the service does not run: the host's lifespan must contain"),
    ):
        client.get("/rank/v1/surfaces")


def test_the_start_fails_with_its_reason() -> None:
    with (
        pytest.raises(InvalidInputError, match="store must be sqlite:FILE"),
        TestClient(create_app(Settings(store="mysql://x"))),
    ):
        pass


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(Engine, "loaded", fail)


def test_spans_of_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traced = OpenTelemetryMiddleware(create_app(Settings(store="memory:")), tracer_provider=provider)
    with TestClient(traced, base_url="http://localhost", raise_server_exceptions=False) as client:
        assert client.post("/v1/surfaces", json=ADS).status_code == 201
        failing(monkeypatch)
        assert client.get("/v1/surfaces/ads").status_code == 500
    statuses = {
        span.attributes["http.status_code"]
        for span in exporter.get_finished_spans()
        if span.kind.name == "SERVER"
    }
    assert statuses == {201, 500}


class Recorder(Transport):
    """Transport that keeps what it would send to Sentry."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        self.events += [item.payload.json for item in envelope.items if item.payload.json]


def test_errors_are_reported_to_sentry(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    sentry_sdk.init(
        dsn="http://key@127.0.0.1:9/1",
        transport=recorder,
        default_integrations=False,
        auto_enabling_integrations=False,
    )
    try:
        watched = SentryAsgiMiddleware(create_app(Settings(store="memory:")))
        with TestClient(watched, base_url="http://localhost", raise_server_exceptions=False) as client:
            assert client.get("/v1/surfaces/none").status_code == 404
            failing(monkeypatch)
            answer = client.get("/v1/surfaces/ads")
    finally:
        sentry_sdk.init()
    assert answer.status_code == 500
    assert "a mistake" not in answer.text
    (event,) = recorder.events
    assert event["exception"]["values"][-1]["value"] == "a mistake"
