"""The commands ``banditrank serve`` and ``banditrank keys``."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from helpers.command_line import check_refusal, run
from helpers.live import wait_until

PROGRAM = [sys.executable, "-c", "from banditrank._cli.main import main; main()"]
ADS = {"name": "ads", "items": ["a", "b", "c"], "n_positions": 2}
COUNTED = 'banditrank_requests_total{operation="feedback",status="200"} 20.0'
ENDLESS_STOP = """
import time
from banditrank.engine._engine import Engine
from banditrank.service import _server

Engine.close = lambda self: time.sleep(10_000)
_server.STOP_TIMEOUT_SECONDS = 0.5
"""
FAILING_START = """
from banditrank.errors import BanditRankError
from banditrank.service import _service

async def fail(self):
    raise BanditRankError("the keys cannot be read")

_service.Service._load_keys = fail
"""
MAX_WAIT_SECONDS = 300.0  # for compilation


# Each request has a connection of its own, so that all workers get some.
HTTP = httpx.Client(
    timeout=MAX_WAIT_SECONDS,
    limits=httpx.Limits(max_keepalive_connections=0),
    verify=False,  # noqa: S501 - no TLS
)


@contextmanager
def serving(directory: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--port", str(port), *options], cwd=directory, stdout=log, stderr=log
        )
        address = f"http://127.0.0.1:{port}"
        try:
            until = time.monotonic() + MAX_WAIT_SECONDS
            while time.monotonic() < until:
                assert process.poll() is None, (directory / "log").read_text()
                try:
                    HTTP.get(f"{address}/healthz")
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield address, process
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_serves_and_stops_gracefully(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving(tmp_path, "--workers", workers, "--log-requests") as (address, process):
        wait_until(lambda: said(tmp_path, "service started") == int(workers))
        assert HTTP.post(f"{address}/v1/surfaces", json=ADS).status_code == 201
        for _ in range(20):  # on separate connections, so that all workers have some
            shown = HTTP.post(f"{address}/v1/surfaces/ads/rankings", json={"user_type": "everybody"}).json()
            response = HTTP.post(f"{address}/v1/feedback", json={"ranking": shown["id"]})
            assert response.json() == {"status": "counted"}
        for _ in range(5):  # answered by different workers
            wait_until(lambda: COUNTED in HTTP.get(f"{address}/metrics").text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    messages = [line["message"] for line in lines]
    assert messages.count("service started") == messages.count("service stopped") == int(workers)
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert next(line["address"] for line in lines if line["message"] == "service listening") == address
    assert sum(line.get("operation") == "feedback" for line in lines) == 20
    assert (tmp_path / "banditrank.db").exists()
    assert not list(tmp_path.glob("banditrank-*")), "shared metrics are left behind"


def test_workers_stop_if_their_parent_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as (address, process):
        process.kill()
        process.wait()
        wait_until(lambda: not is_served(address))
        wait_until(lambda: said(tmp_path, "service stopped") == said(tmp_path, "service started") >= 1)


def test_a_rolling_restart_loses_no_request_of_kept_connections(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as (address, process), ThreadPoolExecutor() as threads:
        wait_until(lambda: said(tmp_path, "worker ready") == 2)
        assert HTTP.post(f"{address}/v1/surfaces", json=ADS).status_code == 201
        is_over = threading.Event()

        def keep_asking(pause_seconds: float) -> int:
            n_asked = 0
            with httpx.Client(base_url=address, timeout=MAX_WAIT_SECONDS) as kept:
                while not is_over.wait(pause_seconds):
                    shown = kept.post("/v1/surfaces/ads/rankings", json={"user_type": "everybody"}).json()
                    answer = kept.post("/v1/feedback", json={"ranking": shown["id"]})
                    assert answer.json() == {"status": "counted"}
                    n_asked += 1
            return n_asked

        asking = [threads.submit(keep_asking, pause) for pause in (0.0, 0.01, 0.3, 1.0)]
        try:
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: said(tmp_path, "workers restarted") or any(each.done() for each in asking))
        finally:
            is_over.set()
        n_counted = sum(each.result() for each in asking)
        assert said(tmp_path, "worker ready") == 4
        wait_until(lambda: HTTP.get(f"{address}/v1/surfaces/ads").json()["rounds"] == n_counted)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_open_streams_do_not_delay_the_end(tmp_path: Path, workers: str) -> None:
    with serving(tmp_path, "--workers", workers) as (address, process):
        wait_until(lambda: said(tmp_path, "service started") == int(workers))
        assert HTTP.post(f"{address}/v1/surfaces", json=ADS).status_code == 201
        with httpx.stream("GET", f"{address}/v1/surfaces/ads/events", timeout=MAX_WAIT_SECONDS) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: state"
            process.send_signal(signal.SIGTERM)
            for _ in lines:
                pass  # to its end, which is sent: httpx would raise
        process.wait(MAX_WAIT_SECONDS)
    assert "Cancel" not in (tmp_path / "log").read_text(), "uvicorn waited in vain"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_start_that_fails_ends_with_its_reason(tmp_path: Path, workers: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAILING_START)
    process = subprocess.run(
        [*PROGRAM, "serve", "--port", "0", "--workers", workers],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        stderr=subprocess.PIPE,
        timeout=MAX_WAIT_SECONDS,
        check=False,
        text=True,
    )
    *_, last = process.stderr.splitlines()
    assert (process.returncode, last) == (2, "banditrank: the keys cannot be read")


def test_a_thread_that_does_not_end_does_not_delay_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDLESS_STOP)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with serving(tmp_path) as (_, process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) == -signal.SIGKILL
    assert said(tmp_path, "service does not stop") == 1


def said(directory: Path, message: str) -> int:
    return (directory / "log").read_text().count(f'"message": "{message}"')


def is_served(address: str) -> bool:
    try:
        return HTTP.get(f"{address}/healthz").is_success
    except httpx.TransportError:
        return False


def test_a_restart_resumes_from_the_stored_counts(tmp_path: Path) -> None:
    with serving(tmp_path, "--store", "sqlite:kept.db") as (address, process):
        assert HTTP.post(f"{address}/v1/surfaces", json=ADS).status_code == 201
        shown = HTTP.post(f"{address}/v1/surfaces/ads/rankings", json={"user_type": "everybody"}).json()
        feedback = {"ranking": shown["id"], "clicked": shown["items"][0]}
        assert HTTP.post(f"{address}/v1/feedback", json=feedback).json() == {"status": "counted"}
        process.send_signal(signal.SIGTERM)
        process.wait(MAX_WAIT_SECONDS)
    with serving(tmp_path, "--store", "sqlite:kept.db") as (address, _):
        assert HTTP.post(f"{address}/v1/surfaces", json=ADS).status_code == 409
        assert HTTP.get(f"{address}/v1/surfaces/ads").json()["rounds"] == 1
        assert HTTP.post(f"{address}/v1/feedback", json=feedback).json() == {"status": "repeated"}


def test_the_settings_file_is_read_and_overridden(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('store = "memory:"\nrequire_keys = true\nport = 1\n')
    with serving(tmp_path, "--config", "settings.toml") as (address, _):
        assert HTTP.get(f"{address}/v1/surfaces").status_code == 401
    assert not (tmp_path / "banditrank.db").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--port", "70000"], "--port must be a whole number from 0 to 65,535, got 70000"),
        (["serve", "--workers", "0"], "--workers must be a whole number from 1 to 64, got 0"),
        (["serve", "--workers", "2", "--store", "memory:"], "--store must be shared by all workers"),
        (["serve", "--store", "mysql://x"], "--store must be sqlite:FILE"),
        (["serve", "--store", "sqlite:settings.toml/x"], "store"),
        (["serve", "--config", "missing.toml"], "--config must be a readable file"),
        (["serve", "--config", "bad.toml"], "--config must be a TOML file"),
        (["serve", "--config", "unknown.toml"], "did you mean port"),
        (
            ["serve", "--config", "wrong.toml"],
            "wrong.toml: port must be a whole number from 0 to 65,535, got 'x'",
        ),
        (["serve", "--host", "256.0.0.1", "--store", "memory:"], "--host must be an address"),
        (["keys", "create", "x", "--rights", "write"], "--rights must be one of"),
        (["keys", "create", "x" * 101], "name must be 1 to 100 printable"),
        (
            ["keys", "create", "x", "--surface", "ads-*"],
            "--surface must be exact names of surfaces, got 'ads-",
        ),
        (["keys", "create", "x", "--expires", "0d"], "--expires must be in the future, .*, got '0d'"),
        (["keys", "create", "x", "--expires", "2020-01-01T00:00:00Z"], "--expires must be in the future"),
        (["keys", "create", "x", "--expires", "999999w"], "--expires must be in the future, up to year 9999"),
        (
            ["keys", "create", "x", "--expires", "2400-01-01"],
            "--expires must be a duration such as 12h or 30d",
        ),
        (["keys", "create", "x", "--expires", "soon"], "--expires must be a duration such as"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text("")
    Path("bad.toml").write_text("port = ")
    Path("unknown.toml").write_text("prot = 1")
    Path("wrong.toml").write_text('port = "x"')
    check_refusal(capsys, arguments, message)


def test_a_port_in_use_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        check_refusal(
            capsys, ["serve", "--port", port, "--store", "memory:"], "--port must be free to listen on"
        )


def test_the_expiry_and_surfaces_of_keys_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    store = ["--store", f"sqlite:{tmp_path / 'keys.db'}"]
    scope = ["--surface", "home", "--surface", "ads", "--expires", "2400-01-31T02:00:00+02:00"]
    assert run(capsys, "keys", "create", "page", *scope, *store)[0] == 0
    before = time.time()
    assert run(capsys, "keys", "create", "month", "--expires", "30d", *store)[0] == 0
    after = time.time()
    assert run(capsys, "keys", "create", "plain", *store)[0] == 0
    page, month, plain = json.loads(run(capsys, "keys", "list", "--json", "-", *store)[1])["keys"]
    assert page["surfaces"] == ["home", "ads"]
    assert page["expires_at"] == "2400-01-31T00:00:00.000+00:00"
    expires = datetime.fromisoformat(month["expires_at"]).timestamp() - 30 * 86_400
    assert before - 0.001 <= expires <= after
    assert (plain["expires_at"], plain["surfaces"], plain["revoked_at"]) == (None, None, None)
    listed = run(capsys, "keys", "list", *store)[1]
    assert "home, ads" in listed
    assert "2400-01-31" in listed


def test_keys_are_created_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # refusals are checked to change no file in it
    store = ["--store", f"sqlite:{tmp_path / 'keys.db'}"]
    status, key, _ = run(capsys, "keys", "create", "shop window", "--rights", "rank,read", *store)
    assert status == 0
    assert key.startswith("br_")
    identity = key.split("_")[1]
    listed = run(capsys, "keys", "list", *store)[1]
    assert identity in listed
    assert "rank, read" in listed
    assert key.strip() not in listed
    assert run(capsys, "keys", "revoke", identity, *store)[1] == f"revoked {identity}\n"
    message = f"key must be the id of a key that is not revoked, got '{identity}'"
    check_refusal(capsys, ["keys", "revoke", identity, *store], message)
