"""A reproduction goes on where it was stopped, and gives the same data every time."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.small_study import STUCK_FILE, STUDY

from banditrank import BanditRankError, InvalidInputError, UCBRank, __version__, kdd2012
from banditrank.experiments.reproduce import reproduce
from banditrank.experiments.simulation_part import SimulationPart
from banditrank.experiments.study import Frames, Reading, Study

PROGRAM = (
    "import sys\n"
    f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    "from helpers.small_study import STUDY\n"
    "from banditrank.cli.main import main\n"
    "from banditrank.experiments import catalog\n"
    "catalog.STUDIES[STUDY.name] = STUDY\n"
    "main(['reproduce', 'small', '--output', sys.argv[1]])\n"
)
SECONDS = 60  # for a process to start, on a busy machine


def data(directory: Path) -> dict[str, bytes]:
    """Return all files of data by where they are; times are not among them."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted((directory / "data").rglob("*"))
        if path.is_file()
    }


def results(directory: Path) -> dict[str, object]:
    """Return the summary, but for times."""
    summary = json.loads((directory / "summary.json").read_text())
    del summary["seconds"], summary["studies"]["small"]["seconds"]
    return summary


def stop(directory: Path, how: signal.Signals) -> tuple[int, str]:
    """Stop a run in the middle of its second part; return its status and what it complained about."""
    stuck = directory.parent / "stuck"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(directory)],
        env={**os.environ, STUCK_FILE: str(stuck)},
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + SECONDS
    while not stuck.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(how)
    _, complaint = process.communicate(timeout=SECONDS)
    assert stuck.exists(), complaint
    return process.returncode, complaint


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("uninterrupted")
    reproduce([STUDY], directory, workers=2)
    return directory


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_goes_on(how: signal.Signals, tmp_path: Path, uninterrupted: Path) -> None:
    directory = tmp_path / "out"
    status, complaint = stop(directory, how)
    if how == signal.SIGINT:
        assert status == 130
        assert complaint == "banditrank: interrupted, parts done: 1; the same command goes on\n"
    else:
        assert status == -signal.SIGKILL
    kept = directory / "data" / "small" / "first.parquet"
    assert [path.name for path in (directory / "data").rglob("*.parquet")] == ["first.parquet"]
    before = kept.stat()
    parts: list[tuple[str, bool]] = []
    reproduce([STUDY], directory, on_part=lambda name, was_there: parts.append((name, was_there)))
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert parts == [
        ("small/first", True),
        ("small/second", False),
        ("small/clock", False),
        ("small/simulated", False),
    ]
    assert data(directory) == data(uninterrupted)
    assert results(directory) == results(uninterrupted)


def test_the_data_depend_on_the_seed_and_not_on_the_workers(tmp_path: Path, uninterrupted: Path) -> None:
    reproduce([STUDY], tmp_path / "one", workers=1)
    assert data(tmp_path / "one") == data(uninterrupted)
    reproduce([STUDY], tmp_path / "other", seed=1)
    other = data(tmp_path / "other")
    assert not {name for name, content in data(uninterrupted).items() if other[name] == content}


def test_damaged_data_are_made_again_and_nothing_else(tmp_path: Path, uninterrupted: Path) -> None:
    reproduce([STUDY], tmp_path)
    damaged = tmp_path / "data" / "small" / "second.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    made: list[str] = []
    reproduce([STUDY], tmp_path, on_part=lambda name, was_there: None if was_there else made.append(name))
    assert made == ["small/second"]
    assert data(tmp_path) == data(uninterrupted)


def test_the_page_is_of_the_studies_named_and_others_come_back_without_a_run(tmp_path: Path) -> None:
    other = replace(STUDY, name="other")
    reproduce([STUDY], tmp_path)
    reproduce([other], tmp_path)
    assert list(json.loads((tmp_path / "summary.json").read_text())["studies"]) == ["other"]
    was_there: list[bool] = []
    reproduce([STUDY, other], tmp_path, on_part=lambda _, there: was_there.append(there))
    assert list(json.loads((tmp_path / "summary.json").read_text())["studies"]) == ["small", "other"]
    assert all(was_there)


def test_all_that_is_promised_is_written(uninterrupted: Path) -> None:
    files = {str(path.relative_to(uninterrupted)) for path in uninterrupted.rglob("*") if path.is_file()}
    assert files == {
        "data/small/first.parquet",
        "data/small/second.parquet",
        "data/small/simulated.parquet",
        "data/small/first.parquet.sha256",
        "data/small/second.parquet.sha256",
        "data/small/simulated.parquet.sha256",
        "timings/small/clock.parquet",
        "timings/small/clock.parquet.sha256",
        "figures/small/numbers.png",
        "figures/small/numbers.svg",
        "index.html",
        "reproduction.json",
        "seconds.json",
        "summary.json",
    }
    summary = json.loads((uninterrupted / "summary.json").read_text())
    assert (summary["version"], summary["seed"], summary["quick"]) == (__version__, 0, False)
    small = summary["studies"]["small"]
    assert small["verdict"] == "agrees"
    assert small["checks"][0]["holds"] is True
    assert small["parts"] == ["first", "second", "clock", "simulated"]
    assert (uninterrupted / "figures/small/numbers.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_run_sweeps_less_and_has_a_directory_of_its_own(tmp_path: Path, uninterrupted: Path) -> None:
    assert reproduce([STUDY], tmp_path, quick=True).quick
    quick, full = (data(each)["data/small/simulated.parquet"] for each in (tmp_path, uninterrupted))
    assert quick != full
    with pytest.raises(InvalidInputError, match="whose quick is True and not False"):
        reproduce([STUDY], tmp_path)


@pytest.mark.parametrize(("option", "value"), [("seed", -1), ("seed", 1.5), ("workers", 0)])
def test_bad_settings_are_refused_before_anything_is_made(tmp_path: Path, option: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=f"{option} must be a whole number"):
        reproduce([STUDY], tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


def test_data_that_somebody_changes_meanwhile_are_told(tmp_path: Path) -> None:
    def change(name: str, _: bool) -> None:  # noqa: FBT001
        if name == "small/second":
            (tmp_path / "data" / "small" / "first.parquet").write_bytes(b"other")

    with pytest.raises(BanditRankError, match=r"^the data of small/first were changed"):
        reproduce([STUDY], tmp_path, on_part=change)


def test_a_study_without_figures_has_no_directory_for_them(tmp_path: Path) -> None:
    def read(frames: Frames) -> Reading:
        return replace(STUDY.read(frames), pictures=())

    reproduce([replace(STUDY, read=read)], tmp_path)
    assert not (tmp_path / "figures").exists()


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    reproduce([STUDY], tmp_path)
    (tmp_path / "index.html").unlink()
    (tmp_path / "index.html").mkdir()
    with pytest.raises(InvalidInputError, match=r"^output must be writable"):
        reproduce([STUDY], tmp_path)


def test_a_part_that_was_interrupted_is_not_kept(tmp_path: Path) -> None:
    part = SimulationPart(
        name="long", policy=UCBRank(0.25), problems=(kdd2012(),), horizon=5000, replications=500, seed=0
    )
    half = object.__new__(type("Half", (), {"complete": False}))

    def sweep(_: int, *, quick: bool) -> list[SimulationPart]:  # noqa: ARG001
        return [part]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banditrank.experiments.simulation_part.simulate", lambda *_, **__: half)
        with pytest.raises(KeyboardInterrupt):
            reproduce([Study("a", "A", "", sweep, STUDY.read, "")], tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_progress_bar_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    bars: list[tuple[int, list[int]]] = []

    @contextmanager
    def bar(_: str, steps: int, *, shown: bool | None):  # noqa: ANN202
        assert shown is None
        made: list[int] = []
        bars.append((steps, made))
        yield made.append

    monkeypatch.setattr("banditrank.experiments.conduct.progress_bar", bar)
    reproduce([STUDY], tmp_path)
    reproduce([STUDY], tmp_path)
    (steps, made), (steps_again, made_again) = bars
    assert sum(made) == steps > 0
    assert min(made) >= 0
    assert (steps_again, made_again) == (0, [])
