"""``banditrank reproduce``."""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, contents, run
from helpers.handwritten_log import GOOD, write_log
from helpers.small_study import STUDY

from banditrank import __version__, kdd2012
from banditrank._cli.main import main
from banditrank.experiments._reproduce import STUDIES
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.logs.kdd2012._sample_log import write_sample_log


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a directory of its own, with a study that takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(STUDIES, STUDY.name, STUDY)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a full run of the small study."""
    directory = tmp_path_factory.mktemp("run") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STUDIES, STUDY.name, STUDY)
        with pytest.raises(SystemExit) as stopped:
            main(["reproduce", "small", "--output", str(directory)])
    assert stopped.value.code == 0
    return directory


def test_it_prints_the_agreements_and_the_path_of_the_report(capsys: pytest.CaptureFixture) -> None:
    status, output, complaint = run(capsys, "reproduce", "small", "--output", "out")
    assert (status, complaint) == (0, "")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert lines[0] == f"Reproducing the paper: a full run, seed 0, banditrank {__version__}"
    assert any(line.startswith("small A small study agrees 1 of 1 ") for line in lines)
    assert lines[-1] == "report: out/index.html"
    assert Path("out/index.html").read_text().startswith("<!doctype html>")


def test_what_is_not_decided_is_not_counted_as_failed(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def analyse(frames: Frames) -> StudyResult:
        result = STUDY.analyse(frames)
        return replace(result, checks=[*result.checks, Check("It is so.", None, "unknown")])

    monkeypatch.setitem(STUDIES, STUDY.name, replace(STUDY, analyse=analyse))
    output = run(capsys, "reproduce", "small", "--output", "out")[1]
    assert "partly 1 of 2, 1 not decided" in " ".join(output.split())


def test_options_reach_the_studies(capsys: pytest.CaptureFixture) -> None:
    options = ["--quick", "--seed", "3", "--workers", "1"]
    assert run(capsys, "reproduce", "small", *options)[0] == 0
    summary = json.loads(Path("output/reproduction-quick/summary.json").read_text())
    assert (summary["seed"], summary["quick"]) == (3, True)
    run(capsys, "reproduce", "small")
    assert Path("output/reproduction/summary.json").exists()


def test_a_second_run_changes_no_data(capsys: pytest.CaptureFixture) -> None:
    run(capsys, "reproduce", "small", "--output", "out")
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.parquet")}
    assert run(capsys, "reproduce", "small", "--output", "out")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.parquet")} == before
    assert len(before) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smal"], r"study must be one of all, .*\(did you mean small\?\), got 'smal'"),
        (["--training", "training.txt"], "--training must be given together with the profile file, got"),
        (["table1", "--profiles", "p.txt"], "--profiles must be given together with the training file, got"),
        (
            ["small", "--training", "training.txt", "--profiles", "userid_profile.txt"],
            "--training must be left out without the study table1, got 'training.txt'",
        ),
        (["small", "--output", ""], "--output must not be empty, got ''"),
        (["small", "--output="], "--output must not be empty, got ''"),
        ([""], "argument must not be empty, got ''"),
        (
            ["table1", "--training", "none.txt", "--profiles", "userid_profile.txt"],
            r"training file must be readable \(no such file or directory\), got 'none.txt'",
        ),
        (
            ["table1", "--training", "training.txt", "--profiles", "."],
            "profile file must be a file, got '.'",
        ),
        (["small", "--seed", "-1"], "--seed must be a whole number of at least 0, got -1"),
        (["small", "--workers", "0"], "--workers must be a whole number from 1 to 1,024, got 0"),
        (["small", "--workers", "100000"], "--workers must be a whole number from 1 to 1,024, got 100000"),
        (["small", "--output", "training.txt"], "--output must be writable"),
        (["small", "--output", "training.txt/below"], "--output must be writable"),
        (["small", "--output", "out", "--seed", "1"], "--output .*, whose seed is 0 and not 1, got 'out'"),
        (["small", "--output", "out", "--quick"], "--output .*, whose quick is False and not True"),
        (["small", "--output", "mine"], "--output must be new or hold a reproduction, not another figures"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    arguments: list[str], message: str, finished_run: Path, capsys: pytest.CaptureFixture
) -> None:
    write_log(Path(), GOOD)
    Path("mine/figures").mkdir(parents=True)
    shutil.copytree(finished_run, "out")
    check_refusal(capsys, ["reproduce", *arguments], message)


def test_data_of_another_version_are_refused(finished_run: Path, capsys: pytest.CaptureFixture) -> None:
    shutil.copytree(finished_run, "out")
    manifest = Path("out/reproduction.json")
    manifest.write_text(manifest.read_text().replace(__version__, "0.0.1"))
    check_refusal(capsys, ["reproduce", "small", "--output", "out"], "whose version is '0.0.1' and not")


def test_table_1_is_extracted_from_raw_files(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["banditrank.experiments._table1.sweep"], "QUICK_ROWS", 5000)
    Path("log").mkdir()
    log = write_sample_log(kdd2012(), Path("log"), n_rows=200_000, seed=4)
    before = {path: content for path, content in contents().items() if path.parts[0] == "log"}
    files = ["--training", str(log.training), "--profiles", str(log.profiles)]
    status, output, complaint = run(capsys, "reproduce", "table1", "--quick", "--output", "out", *files)
    assert (status, complaint) == (0, "")
    found = json.loads(Path("out/summary.json").read_text())["studies"]["table1"]
    assert found["jobs"] == ["sample-log", "raw-files"]
    assert found["checks"][1]["holds"] is not None
    assert "The raw files give" in found["findings"]
    assert "not checked" not in output
    assert {path: content for path, content in contents().items() if path.parts[0] == "log"} == before


def test_without_duckdb_it_says_how_to_install_it(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = "duckdb is required for banditrank reproduce: pip install 'banditrank[logs]'"
    check_refusal(capsys, ["reproduce", "table1"], f"^banditrank: {re.escape(message)}\n$")


@pytest.mark.parametrize(
    ("arguments", "packages", "extras"),
    [
        (["--quick"], "duckdb, jinja2, matplotlib, pandas and pyarrow are", "logs,reports"),
        (["--quick", "small"], "jinja2, matplotlib, pandas and pyarrow are", "reports"),
        (
            ["table1", "--backend", "ray"],
            "duckdb, jinja2, matplotlib, pandas, pyarrow and ray are",
            "logs,ray,reports",
        ),
    ],
)
def test_all_missing_extras_are_named_before_any_job(
    arguments: list[str],
    packages: str,
    extras: str,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the backend was opened")

    for package in ("duckdb", "jinja2", "matplotlib", "pandas", "pyarrow", "ray"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("banditrank.experiments._run_studies.open_backend", fail)
    message = f"{packages} required for banditrank reproduce: pip install 'banditrank[{extras}]'"
    check_refusal(capsys, ["reproduce", *arguments], f"^banditrank: {re.escape(message)}\n$")
