"""A comparison resumes where it was interrupted, runs only missing jobs, and is reproducible."""

import json
from pathlib import Path

import pytest
from helpers.blank_figures import render_blank_figures
from helpers.small_comparison import POLICIES, shrink

from banditrank import InvalidInputError, UnknownNameError
from banditrank.experiments._compare.compare import compare
from banditrank.experiments._compare.custom_suites import SUITE_NAMES
from banditrank.experiments._compare.suites import SUITES
from banditrank.simulation._backends import local


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)
    render_blank_figures(monkeypatch)


def data(directory: Path) -> dict[str, bytes]:
    """Return the content of all data files by path, without timings."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted((directory / "data").rglob("*.parquet"))
    }


def run(directory: Path, suites: list[str], policies: list[str], **options: object) -> list[str]:
    """Run a comparison and return the ids of the jobs that ran."""
    jobs: list[tuple[str, bool]] = []
    compare(
        suites,
        policies,
        directory,
        quick=True,
        on_job=lambda name, existed: jobs.append((name, existed)),
        **options,
    )
    return [name for name, existed in jobs if not existed]


def test_the_data_depend_on_the_seed_and_not_on_the_workers(tmp_path: Path) -> None:
    suites, policies = ["table1", "item-jumps", "reproductions"], ["pbm-ucb"]
    run(tmp_path / "one", suites, policies, workers=1)
    run(tmp_path / "two", suites, policies, workers=2)
    one = data(tmp_path / "one")
    assert "data/item-jumps/pbm-ucb+window.parquet" in one
    assert data(tmp_path / "two") == one
    run(tmp_path / "other", suites, policies, seed=1)
    other = data(tmp_path / "other")
    assert not {name for name, content in one.items() if other[name] == content}


def test_suites_with_features_have_policies_of_their_own(tmp_path: Path) -> None:
    jobs = run(tmp_path, ["linear-context", "table1"], ["contextual-thompson-rank", "grab", "random"])
    names = [job for job in jobs if "time-of" not in job]
    assert set(names) == {
        *("linear-context/contextual-thompson-rank", "linear-context/random"),
        *("table1/grab", "table1/random"),
    }
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert set(summary["overview"]["metrics"]["scores"]) == {"grab", "random"}
    assert summary["studies"]["linear-context"]["metrics"]["best_policy"] == "contextual-thompson-rank"
    with pytest.raises(InvalidInputError, match=r"^policies must use features to take part in linear"):
        run(tmp_path / "other", ["linear-context"], ["grab"])


def test_only_missing_jobs_run(tmp_path: Path) -> None:
    first = run(tmp_path, ["table1"], ["comb-ucb1"])
    assert first == ["table1/comb-ucb1", "table1/time-of-comb-ucb1"]
    more = run(tmp_path, ["table1", "cascade"], ["comb-ucb1", "random"])
    assert "table1/comb-ucb1" not in more
    assert {"table1/random", "cascade/comb-ucb1", "cascade/time-of-random"} <= set(more)
    assert run(tmp_path, ["table1", "cascade"], ["comb-ucb1", "random"]) == []
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert list(summary["studies"]) == ["table1", "cascade"]
    assert set(summary["overview"]["metrics"]["scores"]) == {"comb-ucb1", "random"}


def test_an_interrupted_comparison_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, policies = tmp_path / "whole", ["comb-ucb1", "random"]
    run(whole, ["table1"], policies)
    real = local.replicate

    def stop(experiment: object, *rest: object) -> object:
        if experiment.policy.name == "random":
            raise KeyboardInterrupt
        return real(experiment, *rest)

    monkeypatch.setattr(local, "replicate", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", ["table1"], policies)
    assert list(data(tmp_path / "stopped")) == ["data/table1/comb-ucb1.parquet"]
    monkeypatch.setattr(local, "replicate", real)
    assert "table1/comb-ucb1" not in run(tmp_path / "stopped", ["table1"], policies)
    assert data(tmp_path / "stopped") == data(whole)


def test_times_are_kept_apart_from_data(tmp_path: Path) -> None:
    run(tmp_path, ["table1"], ["random"])
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    assert files == {"data/table1/random.parquet", "timings/table1/time-of-random.parquet"}
    metrics = json.loads((tmp_path / "summary.json").read_text())["studies"]["table1"]["metrics"]
    assert metrics["policies"]["random"]["microseconds_per_round"] > 0


def test_names_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    for suites, policies in ((["tabel1"], []), ([], ["grap"]), (["table1", ""], [])):
        with pytest.raises(UnknownNameError):
            compare(suites, policies, tmp_path / "out")
    assert not list(tmp_path.iterdir())
    assert (*SUITES, "reproductions") == SUITE_NAMES


def test_a_directory_of_a_reproduction_is_refused(tmp_path: Path) -> None:
    (tmp_path / "reproduction.json").write_text("{}")
    (tmp_path / "data").mkdir()
    with pytest.raises(InvalidInputError, match="must be new or hold a comparison, not another data"):
        run(tmp_path, ["table1"], ["random"])


def test_reproductions_alone_have_no_leaderboard(tmp_path: Path) -> None:
    run(tmp_path, ["reproductions"], list(POLICIES))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert list(summary["studies"]) == ["paper-pbm-ucb"]
    assert "overview" not in summary
