"""``banditrank warm`` compiles what the service needs, once; ``banditrank health`` checks a service."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run
from helpers.live import a_surface
from helpers.running_service import running
from helpers.servers import free_port

from banditrank.dashboard import _warm_up as warming
from banditrank.dashboard._warm_up import WarmUp, distinct_kinds, warm_up
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.engine._experiment import Arm, SurfaceExperiment
from banditrank.engine._surface import Surface
from banditrank.storage._factory import open_store

# Surfaces of other sizes than those that are compiled; prints whether something is compiled.
SERVICE = """
from banditrank.dashboard._warm_up import warm_up
from banditrank.engine._surface import Surface
for settings in ({}, {"treatment": "equal"}, {"treatment": "equal", "utility": "nash"}):
    for n_items, n_positions in ((3, 1), (30, 6)):
        items = [str(number) for number in range(n_items)]
        size = {"items": items, "n_positions": n_positions, "user_types": list("abcd")}
        print(warm_up(Surface("home", **size, **settings)).is_compiled)
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def warmed(monkeypatch: pytest.MonkeyPatch) -> list[Surface]:
    """Return the surfaces that are warmed, which is not done."""
    surfaces: list[Surface] = []

    def warm_up_all(given: list[Surface], workers: int) -> list[WarmUp]:
        assert workers >= 1
        surfaces.extend(given)
        return [WarmUp(surface, is_compiled=False, seconds=0.0) for surface in given]

    monkeypatch.setattr(warming, "warm_up_all", warm_up_all)
    return surfaces


def kinds(surfaces: list[Surface]) -> list[tuple[str, str, str]]:
    return [(one.compiled_policy.name, one.treatment, one.utility) for one in surfaces]


DEFAULT = [
    ("thompson-rank", "personalized", "utilitarian"),
    ("thompson-rank", "equal", "utilitarian"),
    ("thompson-rank", "equal", "nash"),
]


@pytest.mark.parametrize("options", [[], ["--store", "memory:"], ["--store", "sqlite:missing.db"]])
def test_without_surfaces_the_default_kinds_are_compiled(
    capsys: pytest.CaptureFixture, warmed: list[Surface], options: list[str]
) -> None:
    status, output, complaint = run(capsys, "warm", *options)
    assert (status, complaint) == (0, "")
    assert output.startswith("everything is compiled: 6 kinds of surfaces, in ")
    assert kinds(warmed) == [kind for kind in DEFAULT for _ in range(2)], "of two sizes"
    assert not Path("missing.db").exists()


def test_the_surfaces_of_the_store_are_compiled(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, warmed: list[Surface]
) -> None:
    with open_store("sqlite:store.db") as store:
        for name, settings in (("a", {}), ("b", {}), ("c", {"policy": "ucb-rank", "treatment": "equal"})):
            definition = json.dumps({**a_surface(**settings).to_dict(), "name": name})
            store.create_surface(name, definition)
        store.create_surface("new", json.dumps({**a_surface().to_dict(), "name": "new", "future": 1}))
    Path("banditrank.toml").write_text('store = "sqlite:store.db"')
    for variable, value in (
        ("BANDITRANK_STORE", "sqlite:store.db"),
        ("BANDITRANK_CONFIG", "banditrank.toml"),
    ):
        monkeypatch.setenv(variable, value)
        warmed.clear()
        status, output, complaint = run(capsys, "warm")
        monkeypatch.delenv(variable, raising=False)
        assert status == 0
        assert output.startswith("everything is compiled: 2 kinds")
        assert complaint.startswith("banditrank: surface 'new' is skipped: ")
        assert kinds(warmed) == [DEFAULT[0], ("ucb-rank", "equal", "utilitarian")]


def test_given_policies_are_compiled(capsys: pytest.CaptureFixture, warmed: list[Surface]) -> None:
    words = ["--policy", "ucb-rank,random", "--treatment", "equal", "--utility", "maximin,alpha:2"]
    assert run(capsys, "warm", *words)[0] == 0
    assert ("ucb-rank", "equal", "maximin") in kinds(warmed)
    assert {treatment for _, treatment, _ in kinds(warmed)} == {"equal"}
    assert run(capsys, "warm", "--policy", "random", "--utility", "nash")[0] == 0  # of equal treatment
    status, _, complaint = run(capsys, "warm", "--treatment", "personalized", "--utility", "nash")
    assert (status, "--utility must be left out under personalized treatment" in complaint) == (2, True)


def test_kinds_differ_by_policy_treatment_utility_and_solver() -> None:
    surfaces = [
        a_surface(),
        a_surface(items=("a", "b", "c")),
        a_surface(keep_seconds=90_000.0),
        a_surface(treatment="equal"),
        a_surface(treatment="equal", utility="nash"),
        a_surface(treatment="equal", utility="nash", items=("a", "b", "c")),
        a_surface(policy="random"),
    ]
    assert distinct_kinds(surfaces) == [surfaces[index] for index in (0, 3, 4, 6)]


def test_kinds_include_the_arms_of_experiments_and_both_click_models() -> None:
    arms = [Arm("old", 0.2, "ucb-rank"), Arm("hold-out", 0.1), Arm("editors", 0.1, "fixed", order=("a", "b"))]
    surface = a_surface(experiment=SurfaceExperiment("autumn", arms))
    surfaces = [surface, a_surface(), a_surface(click_model="position-based")]
    found = distinct_kinds(surfaces)
    assert [one.compiled_policy.name for one in found] == ["thompson-rank", "ucb-rank", "random"]
    assert all(one.experiment is None for one in found), "all visits are ranked by the surface's policy"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "thompson"], "--policy must be one of .*did you mean thompson-rank"),
        (["--policy", "top-rank"], "--policy must learn from counts alone"),
        (["--treatment", "fair"], "--treatment must be"),
        (["--workers", "0"], "--workers must be a whole number from 1"),
        (["--config", "missing.toml"], "--config must be a readable file"),
    ],
)
def test_invalid_options_are_reported(capsys: pytest.CaptureFixture, words: list[str], message: str) -> None:
    check_refusal(capsys, ["warm", *words], message)


def test_a_cache_that_cannot_be_written_is_reported(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, warmed: list[Surface]
) -> None:
    monkeypatch.setattr("banditrank._compilation.preferred_cache_directory", lambda: Path("elsewhere"))
    check_refusal(capsys, ["warm"], "cache directory must be writable: set NUMBA_CACHE_DIR, got 'elsewhere'")
    assert warmed == []


def test_what_is_compiled_is_not_compiled_again() -> None:
    for settings in ({}, {"treatment": "equal"}, {"treatment": "equal", "utility": "nash"}):
        warm_up(a_surface(**settings))
        assert not warm_up(a_surface(**settings)).is_compiled


@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
def test_the_code_of_both_click_models_is_compiled(monkeypatch: pytest.MonkeyPatch, click_model: str) -> None:
    counted: list[tuple[str, int]] = []
    assess = warming.assess

    def record(counts: SurfaceCounts) -> object:
        counted.append((counts.surface.click_model, counts.counts.rounds))
        return assess(counts)

    monkeypatch.setattr(warming, "assess", record)
    warm_up(a_surface(click_model=click_model))
    assert counted == [("single-look", 2), ("position-based", 2)]


@pytest.mark.campaign
def test_a_service_compiles_nothing_after_warm(tmp_path: Path) -> None:
    """From an empty cache, in processes of their own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "1"}
    program = [sys.executable, "-c", "from banditrank._cli.main import main; main()"]

    def output(*words: str) -> str:
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
        ).stdout

    first = output(*program, "warm")
    assert re.search(r"^compiled [3-6] of 6 kinds of surfaces", first, re.MULTILINE)
    assert first.count("\n") >= 4
    assert output(*program, "warm").startswith("everything is compiled: 6 kinds of surfaces")
    assert output(sys.executable, "-c", SERVICE) == "False\n" * 6


def test_health_checks_a_service(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(require_keys=True) as service:
        port = service.address.rpartition(":")[2]
        assert run(capsys, "health", "--url", service.address) == (0, "ok\n", "")
        assert run(capsys, "health", "--ready", "--url", service.address) == (0, "ready\n", "")
        monkeypatch.setenv("BANDITRANK_PORT", port)
        monkeypatch.setenv("BANDITRANK_HOST", "0.0.0.0")  # noqa: S104 - not bound
        assert run(capsys, "health")[0] == 0
        monkeypatch.delenv("BANDITRANK_PORT")
        Path("banditrank.toml").write_text(f"port = {port}")
        assert run(capsys, "health", "--config", "banditrank.toml")[0] == 0
        monkeypatch.setattr(service.engine._sync_loop._loaded, "is_set", lambda: False)
        status, _, complaint = run(capsys, "health", "--ready", "--url", service.address)
        assert (status, complaint) == (
            1,
            "banditrank: the service returned status 503: surfaces are being loaded\n",
        )


def test_health_of_no_service_is_an_error(capsys: pytest.CaptureFixture) -> None:
    address = f"127.0.0.1:{free_port()}"
    status, output, complaint = run(capsys, "health", "--url", f"http://{address}")
    assert (status, output) == (1, "")
    assert complaint.startswith(f"banditrank: the service at {address} does not respond: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "ftp://x"], "--url must be an address such as"),
        (["--url", "http://[x"], "--url must be an address such as"),
        (["--url", "http://x:99999"], "--url must be an address such as"),
        (["--timeout", "0"], "--timeout must be a number from 0.001"),
        (["--config", "missing.toml"], "--config must be a readable file"),
    ],
)
def test_invalid_health_options_are_reported(
    capsys: pytest.CaptureFixture, words: list[str], message: str
) -> None:
    check_refusal(capsys, ["health", *words], message)


@pytest.mark.parametrize("port", ["99999", "http"])
def test_health_names_an_invalid_port(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, port: str
) -> None:
    monkeypatch.setenv("BANDITRANK_PORT", port)
    check_refusal(capsys, ["health"], "BANDITRANK_PORT must be a whole number from 0 to 65,535, got")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("port = 8420.5", "settings.toml: port must be a whole number from 0 to 65,535, got 8420.5"),
        ("port = true", "settings.toml: port must be a whole number from 0 to 65,535, got True"),
        ('port = "8420"', "settings.toml: port must be a whole number from 0 to 65,535, got '8420'"),
        ("host = 5", "settings.toml: host must be text, got 5"),
    ],
)
def test_health_refuses_the_settings_that_serve_refuses(
    capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text(line)
    check_refusal(capsys, ["health", "--config", "settings.toml"], message)


@pytest.mark.parametrize("host", ["shop..example", "x" * 100])
def test_a_host_that_cannot_be_looked_up_does_not_respond(capsys: pytest.CaptureFixture, host: str) -> None:
    status, _, complaint = run(capsys, "health", "--url", f"http://{host}")
    assert status == 1
    assert complaint.startswith(f"banditrank: the service at {host} does not respond: ")


def test_health_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom banditrank._cli.main import main\n"
        f"try:\n    main(['health', '--url', 'http://127.0.0.1:{free_port()}'])\n"
        "except SystemExit as stop:\n    assert stop.code == 1\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "msgspec", "httpx", "uvicorn"} & set(done.stdout.split())
