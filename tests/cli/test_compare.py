"""``banditrank compare``."""

import json
import re
import sys
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run
from helpers.small_comparison import shrink

from banditrank import __version__
from banditrank.simulation._backends import local


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a directory of its own, with suites that take no time."""
    monkeypatch.chdir(tmp_path)
    shrink(monkeypatch)


SMALL = ["--suite", "table1,turnover", "--policies", "comb-ucb1, pbm-ucb,random", "--quick"]


def test_it_prints_the_leaderboard_and_the_path_of_the_report(capsys: pytest.CaptureFixture) -> None:
    status, output, _ = run(capsys, "compare", *SMALL, "--suite", "reproductions")
    assert status == 0
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert lines[0] == f"Comparing policies: a quick run, seed 0, banditrank {__version__}"
    assert any(line.startswith("pbm-ucb examination known ") for line in lines)
    assert sum(line.startswith("comb-ucb1 nothing ") for line in lines) == 2  # in both tables
    assert any(line.startswith("PBM-UCB, with known examination ") for line in lines)
    assert lines[-1] == "report: output/comparison-quick/index.html"
    assert Path("output/comparison-quick/index.html").read_text().startswith("<!doctype html>")


def test_options_reach_the_suites(capsys: pytest.CaptureFixture) -> None:
    arguments = ["--suite", "table1", "--policies", "random", "--seed", "3", "--workers", "1"]
    assert run(capsys, "compare", *arguments)[0] == 0
    summary = json.loads(Path("output/comparison/summary.json").read_text())
    assert (summary["seed"], summary["quick"]) == (3, False)
    assert json.loads(Path("output/comparison/comparison.json").read_text())["seed"] == 3


def test_random_rankings_alone_are_not_called_the_best(capsys: pytest.CaptureFixture) -> None:
    assert run(capsys, "compare", "--suite", "table1", "--policies", "random", "--quick")[0] == 0
    page = Path("output/comparison-quick/index.html").read_text()
    assert "Only random rankings took part, which are a reference." in page
    assert "Only random rankings took part, with a median regret of" in page
    assert "has the lowest" not in page
    assert "has the best score" not in page
    assert "No policy without position knowledge" not in page
    assert "Regret over rounds of random, both axes" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "tabel1"], r"suite must be one of table1, .*\(did you mean table1\?\), got 'tabel1'"),
        (["--suite", "table1,"], r"suite must be one of .*, got ''"),
        (["--policies", "grap"], r"--policies must be one of .*\(did you mean grab\?\), got 'grap'"),
        (["--policies", "oracle"], r"--policies must be one of .*, got 'oracle'"),
        (
            ["--suite", "reproductions", "--policies", "random"],
            "--policies must name one that has a reproduction: .*, got 'random'",
        ),
        ([*SMALL, "--seed", "-1"], "--seed must be a whole number of at least 0, got -1"),
        ([*SMALL, "--workers", "0"], "--workers must be a whole number from 1 to 1,024, got 0"),
        ([*SMALL, "--output", "mine"], "--output must be new or hold a comparison, not another figures"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture
) -> None:
    Path("mine/figures").mkdir(parents=True)
    check_refusal(capsys, ["compare", *arguments], message)


def test_an_interrupted_run_resumes_with_the_same_command(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local.replicate

    def stop(experiment: object, *rest: object) -> object:
        if experiment.policy.name == "random":
            raise KeyboardInterrupt
        return real(experiment, *rest)

    monkeypatch.setattr(local, "replicate", stop)
    arguments = ["compare", "--suite", "table1", "--policies", "comb-ucb1,random", "--quick"]
    status, _, complaint = run(capsys, *arguments)
    assert status == 130
    assert (
        complaint.splitlines()[-1]
        == "banditrank: interrupted, jobs done: 1; rerun the same command to resume"
    )
    monkeypatch.setattr(local, "replicate", real)
    assert run(capsys, *arguments)[0] == 0


def test_missing_packages_are_named_before_anything_is_written(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the backend was opened")

    for package in ("pyarrow", "jinja2"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("banditrank.experiments._run_studies.open_backend", fail)
    message = "jinja2 and pyarrow are required for banditrank compare: pip install 'banditrank[reports]'"
    check_refusal(capsys, ["compare", *SMALL], f"^banditrank: {re.escape(message)}\n$")
