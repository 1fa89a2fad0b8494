"""Ctrl-C ends a search with the best ranking so far."""

import json
import signal
from pathlib import Path

import pytest
from helpers.command_line import run

from banditrank import make_problem
from banditrank._cli.search_progress import SearchProgress, show_search_progress
from banditrank.model._problem_file import write_problem
from banditrank.solvers._solver import Progress


def test_the_first_interruption_ends_the_search_and_the_second_the_program() -> None:
    before = signal.getsignal(signal.SIGINT)
    with show_search_progress() as search:
        assert search(Progress(8, 0.5, 0.6))
        signal.raise_signal(signal.SIGINT)
        assert not search(Progress(16, 0.5, 0.6))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("command", [["solve", "--utility", "maximin"], ["frontier", "--alphas", "1"]])
def test_an_interrupted_search_prints_the_best_so_far(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    problem = make_problem("random", n_user_types=6, n_items=60, n_positions=8, seed=1)
    write_problem(problem, tmp_path / "problem.toml")

    def interrupt(search: SearchProgress, _: Progress) -> bool:
        search.is_interrupted = True
        return False

    monkeypatch.setattr(SearchProgress, "__call__", interrupt)
    name, *options = command
    report = tmp_path / "report.json"
    status, output, complaint = run(
        capsys, name, str(tmp_path / "problem.toml"), *options, "--json", str(report)
    )
    assert status == 130
    assert complaint.endswith("banditrank: interrupted: uncertified rankings are the best found so far\n")
    document = json.loads(report.read_text())
    last = document["points"][-1] if name == "frontier" else document
    assert not last["is_certified"]
    assert last["gap"] > 0
    assert ("best ranking found" in output) == (name == "solve")
