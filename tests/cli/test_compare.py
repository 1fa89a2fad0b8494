"""``banditrank compare``."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.command_line import check_refusal, run
from helpers.custom_policies import write_module
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
    assert "Only random rankings took part, with a mean regret of" in page
    assert "has the lowest" not in page
    assert "has the best score" not in page
    assert "No policy without position knowledge" not in page
    assert "Regret over rounds of random, both axes" in page


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of a module with custom policies, in the current directory."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(Path.cwd()))])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield write_module(Path(), "my_module")
    sys.modules.pop("my_module", None)


def test_custom_policies_and_problems_are_compared_by_import_path_and_file(
    module: str, capsys: pytest.CaptureFixture
) -> None:
    arguments = [
        "--suite",
        "my_problem.toml",
        "--policy",
        f"{module}:Shuffled,random",
        "--quick",
        "--seed",
        "4",
    ]
    status, output, _ = run(capsys, "compare", *arguments)
    assert status == 0
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert sum(line.startswith(("shuffled nothing ", "random nothing ")) for line in lines) == 2
    summary = json.loads(Path("output/comparison-quick/summary.json").read_text())
    assert list(summary["studies"]) == ["my-problem"]
    assert (summary["seed"], summary["version"]) == (4, __version__)
    assert summary["overview"]["metrics"]["custom_policies"] == {"shuffled": "my_module:Shuffled"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "absent:MyPolicy"], "--policy must be in a module .*, and there is no absent, got"),
        (
            ["--policy", "my_module:MostClickd"],
            r"--policy must be one of .*\(did you mean my_module:MostClicked",
        ),
        (["--policy", "my_module:threshold"], "--policy must be a policy, .*, got 'my_module:threshold'"),
        (["--policy", "my_module:Needy"], "--policy must need no arguments but .*, and needs epsilon, got"),
        (["--policy", "my_module:Grab"], "--policy must have a name of its own, and 'grab' is a built-in"),
        (
            ["--policy", "my_module:MostClicked,my_module:Twin"],
            "--policy must have a name of its own, and 'most-clicked' is that of my_module:MostClicked, got",
        ),
        (["--suite", "absent.toml"], r"problem file must be readable \(no such file .*\), got 'absent.toml'"),
        (["--suite", "my_module.py"], "--suite must be one of .*, the path of a TOML file, MODULE:NAME, got"),
        (["--suite", "my_module:copy_of_cascade"], "--suite must have a name of its own, and 'cascade' is"),
    ],
)
def test_custom_policies_and_problems_that_do_not_work_are_one_line(
    arguments: list[str], message: str, module: str, capsys: pytest.CaptureFixture
) -> None:
    assert module == "my_module"
    check_refusal(capsys, ["compare", *arguments], message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "tabel1"], r"suite must be one of table1, .*\(did you mean table1\?\), got 'tabel1'"),
        (["--suite", "table1,"], r"suite must be one of .*, got ''"),
        (["--policies", "grap"], r"--policy must be one of .*\(did you mean grab\?\), got 'grap'"),
        (["--policies", "oracle"], r"--policy must be one of .*, got 'oracle'"),
        (
            ["--suite", "reproductions", "--policies", "random"],
            "--policy must name one that has a reproduction: .*, got 'random'",
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
