"""``banditrank demo``, through the service that it starts."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numba
import pytest
from helpers.command_line import check_refusal, run
from helpers.live import wait_until

from banditrank import __version__
from banditrank._demo import demo
from banditrank._demo.demo import run_demo
from banditrank._demo.regret_tracker import RegretTracker
from banditrank._demo.service import running_service
from banditrank.storage._factory import open_store

PROGRAM = [sys.executable, "-c", "from banditrank._cli.main import main; main()"]
QUICK = ["demo", "--speed", "0", "--port", "0"]
TIMEOUT_SECONDS = 300.0  # includes compilation


@contextmanager
def started(*arguments: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command with a directory for temporary files; kill it if it has not ended."""
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_prints_estimates_beside_true_values(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, *QUICK, "--rounds", "2000", "--seed", "5", "--json", "result.json")
    assert status == 0
    assert output.startswith("open http://127.0.0.1:")
    assert f"search-ads: personalized, 2,000 visits, seed 5, banditrank {__version__}" in output
    assert f"home-carousel: equal under nash, 2,000 visits, seed 5, banditrank {__version__}" in output
    headings = [line.split() for line in output.splitlines() if line.split()[:2] == ["user", "type"]]
    assert headings[1] == ["user", "type", "ranking", "items", "clicks", "per", "visit"]
    result = json.loads(Path("result.json").read_text())
    assert {key: result[key] for key in ("seed", "rounds", "version", "is_interrupted")} == {
        "seed": 5,
        "rounds": 2000,
        "version": __version__,
        "is_interrupted": False,
    }
    ads, carousel = result["surfaces"]
    # In 2,000 simulated runs of 2,000 rounds on each problem the errors of preferences were at most 0.11 and
    # 0.28, regret at most 171 and 460, and values of learned rankings at least 0.87 of the best: at most one
    # correct demo in 600 exceeds that, and these limits are wider.
    for surface, max_error, max_regret in ((ads, 0.2, 250), (carousel, 0.45, 700)):
        assert surface["visits"] == 2000
        assert all(abs(value["estimate"] - value["true_value"]) < max_error for value in surface["positions"])
        assert all(row["learned_click_rate"] > 0.8 * row["best_click_rate"] for row in surface["rankings"])
        assert 0 < surface["regret"] < max_regret
        assert surface["random_click_rate"] < surface["click_rate"] < surface["optimal_click_rate"] + 0.05
        assert 0 < surface["lost_reports"] < 100
        assert 50 < surface["late_reports"] < 150
    assert [row["user_type"] for row in ads["rankings"]] == ["male", "female"]
    assert [row["user_type"] for row in carousel["rankings"]] == [None]
    assert carousel["rankings"][0]["best_ranking"] == ["sneakers", "novels", "headsets"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with started("demo", "--port", "0", "--speed", "20", directory=tmp_path) as process:
        address = process.stdout.readline().split()[1]
        with httpx.Client(timeout=TIMEOUT_SECONDS) as http:
            wait_until(lambda: http.get(f"{address}/v1/surfaces").json()["surfaces"])
            wait_until(lambda: http.get(f"{address}/v1/surfaces/search-ads").json()["rounds"])
            document = http.get(f"{address}/v1/surfaces/search-ads/dashboard").json()
            assert document["has_true_values"]
            assert document["positions"][0][0]["true_value"] == 0.323
            assert http.get(address).headers["content-type"].startswith("text/html")
        assert [path.name[:16] for path in tmp_path.iterdir()] == ["banditrank-demo-"]
        process.send_signal(number)
        output, complaint = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0
    assert "interrupted" not in complaint
    assert "Traceback" not in complaint
    assert "search-ads: personalized" in output
    assert not list(tmp_path.iterdir())
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/healthz")


def test_the_service_stays_with_the_option(tmp_path: Path) -> None:
    with started(*QUICK, "--rounds", "30", "--stay", directory=tmp_path) as process:
        address = process.stdout.readline().split()[1]
        assert process.stdout.readline() == "all visits finished; press Ctrl-C to stop\n"
        assert httpx.get(f"{address}/healthz", timeout=TIMEOUT_SECONDS).status_code == 200
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0
    assert "search-ads: personalized, 30 visits" in output


def test_ctrl_c_before_the_start_is_one_line(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(**_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("banditrank._demo.demo.running_service", interrupt)
    assert run(capsys, *QUICK) == (130, "", "banditrank: interrupted\n")


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        check_refusal(
            capsys, ["demo", "--port", port], f"--port must be free to listen on .* got '127.0.0.1:{port}'"
        )


def test_without_a_port_the_next_free_one_is_used() -> None:
    with (
        running_service(port=None, store="memory:") as one,
        running_service(port=None, store="memory:") as two,
    ):
        assert 8420 <= int(one.rpartition(":")[2]) < int(two.rpartition(":")[2])
        assert httpx.get(f"{one}/healthz").status_code == httpx.get(f"{two}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "0"], "--rounds must be a whole number from 1 to 1,?000,?000,?000, got 0"),
        (["--rounds", "many"], "--rounds must be a whole number, got 'many'"),
        (["--speed", "-1"], "--speed must .* got -1"),
        (["--speed", "nan"], "--speed must .* got nan"),
        (["--seed", "-1"], "--seed must be a whole number .* got -1"),
        (["--port", "70000"], "--port must be a whole number from 0 to 65,?535, got 70000"),
        (["--store", "nowhere"], "--store must be sqlite:FILE, .* got 'nowhere'"),
        (["--json", "none/result.json"], "--json must be a file in a directory that exists"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture, arguments: list[str], message: str) -> None:
    check_refusal(capsys, ["demo", *arguments], message)


def test_a_store_with_keys_is_refused(capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "keys", "create", "page", "--store", "sqlite:mine.db")[0] == 0
    status, _, complaint = run(capsys, *QUICK, "--store", "sqlite:mine.db")
    assert status == 2
    assert complaint == (
        "banditrank: --store must hold no API keys, because the demo's users have none, "
        "got 'sqlite:mine.db'\n"
    )


def test_a_store_with_another_surface_of_the_name_is_refused(capsys: pytest.CaptureFixture) -> None:
    with running_service(port=0, store="sqlite:mine.db") as address:
        mine = {"name": "search-ads", "items": ["a", "b"], "n_positions": 1}
        assert httpx.post(f"{address}/v1/surfaces", json=mine, timeout=TIMEOUT_SECONDS).status_code == 201
    status, _, complaint = run(capsys, *QUICK, "--store", "sqlite:mine.db")
    assert status == 2
    assert "--store must not hold another surface search-ads: its items differ" in complaint


def test_a_later_demo_continues_to_learn() -> None:
    def rounds() -> int:
        store = open_store("sqlite:kept.db")
        try:
            return max(version.version for version in store.versions().values())
        finally:
            store.close()

    settings = {"port": 0, "store": "sqlite:kept.db", "speed": 0.0, "rounds": 40}
    run_demo(**settings)
    before = rounds()
    run_demo(**settings)
    assert rounds() > before > 0


def test_it_continues_when_a_surface_is_deleted_and_items_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank._demo.demo._PROGRESS_SECONDS", 0.001)  # long before the visits end
    responses: list[httpx.Response] = []
    addresses: list[str] = []

    def change_surfaces(trackers: list[RegretTracker]) -> None:
        if len(trackers) == 2 and not responses:
            surfaces = f"{addresses[0]}/v1/surfaces"
            responses.append(httpx.delete(f"{surfaces}/home-carousel", timeout=TIMEOUT_SECONDS))
            body = {"items": ["ad-6", "ad-7"]}
            responses.append(httpx.post(f"{surfaces}/search-ads/items", json=body, timeout=TIMEOUT_SECONDS))

    result = run_demo(port=0, speed=0.0, rounds=300, on_ready=addresses.append, on_progress=change_surfaces)
    assert [answer.status_code for answer in responses] == [204, 200]
    (ads,) = result.surfaces
    assert (ads.name, ads.visits, result.is_interrupted) == ("search-ads", 300, False)


def test_the_compilation_of_each_surface_is_announced_in_one_line(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_surface = demo._open_surface

    async def compile_anew(*arguments: Any) -> None:
        def formula() -> int:
            return 1

        formula.__module__ = "banditrank.policies._thompson_rank"
        numba.njit(formula)()
        await open_surface(*arguments)

    monkeypatch.setattr(demo, "_open_surface", compile_anew)
    status, _, complaint = run(capsys, *QUICK, "--rounds", "3", is_announcement_kept=True)
    assert status == 0
    assert [line for line in complaint.splitlines() if "compiling" in line] == [
        f"banditrank: compiling the policy of {surface} (first use, may take a minute)"
        for surface in ("search-ads", "home-carousel")
    ]
