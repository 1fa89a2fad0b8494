"""A reproduction resumes where it was interrupted, and its data are reproducible."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.blank_figures import render_blank_figures
from helpers.small_study import STUCK_FILE, STUDY

from banditrank import BanditRankError, InvalidInputError, UCBRank, __version__, kdd2012
from banditrank.experiments._reproduce import reproduce
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.experiments._study import Frames, Study, StudyResult

PROGRAM = (
    "import signal, sys\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which may be ignored in this process
    f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    "from helpers.small_study import STUDY\n"
    "from banditrank._cli.main import main\n"
    "from banditrank.experiments._reproduce import STUDIES\n"
    "STUDIES[STUDY.name] = STUDY\n"
    "main(['reproduce', 'small', '--output', sys.argv[1]])\n"
)
SECONDS = 600  # for a process to start, on a busy machine


def data(directory: Path) -> dict[str, bytes]:
    """Return the content of all data files by path, without timings."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted((directory / "data").rglob("*"))
        if path.is_file()
    }


def results(directory: Path) -> dict[str, object]:
    """Return the summary without durations."""
    summary = json.loads((directory / "summary.json").read_text())
    del summary["seconds"], summary["studies"]["small"]["seconds"]
    return summary


def stop(directory: Path, how: signal.Signals) -> tuple[int, str]:
    """Stop a run during its second job; return its status and standard error."""
    stuck = directory.parent / "stuck"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(directory)],
        env={**os.environ, STUCK_FILE: str(stuck)},
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + SECONDS
    try:
        while not stuck.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(how)
        _, complaint = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert stuck.exists(), complaint
    return process.returncode, complaint


@pytest.fixture(autouse=True)
def _blank_figures(uninterrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - has figures
    render_blank_figures(monkeypatch)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("uninterrupted")
    reproduce([STUDY], directory, workers=2)
    return directory


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_resumes(how: signal.Signals, tmp_path: Path, uninterrupted: Path) -> None:
    directory = tmp_path / "out"
    status, complaint = stop(directory, how)
    if how == signal.SIGINT:
        assert status == 130
        assert complaint == "banditrank: interrupted, jobs done: 1; rerun the same command to resume\n"
    else:
        assert status == -signal.SIGKILL
    kept = directory / "data" / "small" / "first.parquet"
    assert [path.name for path in (directory / "data").rglob("*.parquet")] == ["first.parquet"]
    before = kept.stat()
    jobs: list[tuple[str, bool]] = []
    reproduce([STUDY], directory, on_job=lambda name, existed: jobs.append((name, existed)))
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert jobs == [
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


def test_only_damaged_jobs_run_again(tmp_path: Path, uninterrupted: Path) -> None:
    reproduce([STUDY], tmp_path)
    damaged = tmp_path / "data" / "small" / "second.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    made: list[str] = []
    reproduce([STUDY], tmp_path, on_job=lambda name, existed: None if existed else made.append(name))
    assert made == ["small/second"]
    assert data(tmp_path) == data(uninterrupted)


def test_the_report_has_the_named_studies_and_stored_ones_do_not_run_again(tmp_path: Path) -> None:
    other = replace(STUDY, name="other")
    reproduce([STUDY], tmp_path)
    reproduce([other], tmp_path)
    assert list(json.loads((tmp_path / "summary.json").read_text())["studies"]) == ["other"]
    existed: list[bool] = []
    reproduce([STUDY, other], tmp_path, on_job=lambda _, was_stored: existed.append(was_stored))
    assert list(json.loads((tmp_path / "summary.json").read_text())["studies"]) == ["small", "other"]
    assert all(existed)


def test_all_documented_files_are_written(uninterrupted: Path) -> None:
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
    assert small["agreement"] == "agrees"
    assert small["checks"][0]["holds"] is True
    assert small["jobs"] == ["first", "second", "clock", "simulated"]
    assert (uninterrupted / "figures/small/numbers.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_run_sweeps_less_and_has_a_directory_of_its_own(tmp_path: Path, uninterrupted: Path) -> None:
    assert reproduce([STUDY], tmp_path, quick=True).quick
    quick, full = (data(each)["data/small/simulated.parquet"] for each in (tmp_path, uninterrupted))
    assert quick != full
    with pytest.raises(InvalidInputError, match="whose quick is True and not False"):
        reproduce([STUDY], tmp_path)


@pytest.mark.parametrize(("option", "value"), [("seed", -1), ("seed", 1.5), ("workers", 0)])
def test_bad_settings_are_refused_before_anything_is_written(
    tmp_path: Path, option: str, value: float
) -> None:
    with pytest.raises(InvalidInputError, match=f"{option} must be a whole number"):
        reproduce([STUDY], tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


def test_data_changed_during_the_run_are_an_error(tmp_path: Path) -> None:
    def change(name: str, _: bool) -> None:  # noqa: FBT001
        if name == "small/second":
            (tmp_path / "data" / "small" / "first.parquet").write_bytes(b"other")

    with pytest.raises(BanditRankError, match=r"^the data of small/first were changed"):
        reproduce([STUDY], tmp_path, on_job=change)


def test_a_study_without_figures_has_no_directory_for_them(tmp_path: Path) -> None:
    def analyse(frames: Frames) -> StudyResult:
        return replace(STUDY.analyse(frames), figures=())

    reproduce([replace(STUDY, analyse=analyse)], tmp_path)
    assert not (tmp_path / "figures").exists()


def test_an_unwritable_report_is_an_error(tmp_path: Path) -> None:
    reproduce([STUDY], tmp_path)
    (tmp_path / "index.html").unlink()
    (tmp_path / "index.html").mkdir()
    with pytest.raises(InvalidInputError, match=r"^output must be writable"):
        reproduce([STUDY], tmp_path)


def test_an_interrupted_job_is_not_stored(tmp_path: Path) -> None:
    job = SimulationJob(
        name="long",
        policy=UCBRank(coefficient=0.25),
        problems=(kdd2012(),),
        horizon=5000,
        replications=500,
        seed=0,
    )
    half = object.__new__(type("Half", (), {"is_complete": False}))

    def sweep(_: int, *, quick: bool) -> list[SimulationJob]:  # noqa: ARG001
        return [job]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banditrank.experiments._simulation_job.simulate", lambda *_, **__: half)
        with pytest.raises(KeyboardInterrupt):
            reproduce([Study("a", "A", "", sweep, STUDY.analyse, "")], tmp_path)
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

    monkeypatch.setattr("banditrank.experiments._run_studies.progress_bar", bar)
    reproduce([STUDY], tmp_path)
    reproduce([STUDY], tmp_path)
    (steps, made), (steps_again, made_again) = bars
    assert sum(made) == steps > 0
    assert min(made) >= 0
    assert (steps_again, made_again) == (0, [])
