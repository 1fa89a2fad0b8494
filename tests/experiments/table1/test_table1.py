"""Table 1: extracted from a log drawn from it, and from raw files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditrank import InvalidInputError, kdd2012
from banditrank.experiments._reproduce import find_studies
from banditrank.experiments._table1 import STUDY
from banditrank.experiments._table1.sweep import SampleLogJob
from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    return SampleLogJob(name="sample-log", rows=20_000, seed=2).run(workers=1, advance=lambda _: None)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> SampleLog:
    return write_sample_log(kdd2012(), tmp_path_factory.mktemp("log"), n_rows=5000, seed=4)


def test_every_value_of_the_table_is_estimated_twice(sample: pd.DataFrame) -> None:
    kinds = sample.groupby(["estimator", "quantity"]).size()
    assert kinds.to_dict() == {
        (estimator, quantity): count
        for estimator in ("paper", "likelihood")
        for quantity, count in (("arrival rate", 2), ("item mean", 10), ("position preference", 4))
    }
    assert (sample["displays"] > 0).all()


def test_the_log_is_the_same_each_time(sample: pd.DataFrame) -> None:
    again = SampleLogJob(name="sample-log", rows=20_000, seed=2).run(workers=2, advance=lambda _: None)
    pd.testing.assert_frame_equal(sample, again)


def test_without_raw_files_the_table_is_not_checked(sample: pd.DataFrame) -> None:
    result = STUDY.analyse({"sample-log": sample})
    assert [check.holds for check in result.checks] == [True, None]
    assert result.agreement == "not checked"
    assert result.findings.endswith("so whether they give the table is not checked.")
    printed = {(row[0], row[1]): row[2] for row in result.tables[0].rows}
    assert printed["mean of ad-4", "male"] == "0.808"
    assert printed["preference for position 2", "female"] == "0.584"
    assert printed["arrival rate", "female"] == "0.480"
    assert len(result.tables[0].rows) == 16


def test_wrong_estimates_are_noticed(sample: pd.DataFrame) -> None:
    off = sample.assign(estimate=sample["estimate"] + np.where(sample["index"] == 4, 0.5, 0.0))
    result = STUDY.analyse({"sample-log": off})
    assert result.checks[0].holds is False
    assert result.findings.startswith("The estimators do not recover Table 1")


def test_raw_files_that_give_the_table_agree_and_others_do_not(sample: pd.DataFrame) -> None:
    exact = sample.assign(estimate=sample["estimate"].where(sample["estimator"] != "paper", np.nan))
    printed = STUDY.analyse({"sample-log": sample}).tables[0].rows
    exact.loc[exact["estimator"] == "paper", "estimate"] = [float(row[2]) for row in printed]
    same, another = (STUDY.analyse({"sample-log": sample, "raw-files": raw}) for raw in (exact, sample))
    assert same.agreement == "agrees"
    assert "The raw files give the same table: 16 of 16" in same.findings
    assert another.checks[1].holds is False
    assert another.agreement == "disagrees"
    assert "The raw files give another table" in another.findings
    assert len(another.tables) == 2


def test_raw_files_are_a_job(log: SampleLog) -> None:
    study = find_studies(["table1"], training=log.training, profiles=log.profiles)[0]
    jobs = study.sweep(0, quick=True)
    assert [job.name for job in jobs] == ["sample-log", "raw-files"]
    assert jobs[1].estimated_seconds > 0
    before = jobs[1].digest()
    frame = jobs[1].run(workers=1, advance=lambda _: None)
    assert len(frame) == 32
    with log.training.open("a") as file:
        file.write(log.training.read_text().splitlines()[0] + "\n")
    assert study.sweep(0, quick=True)[1].digest() != before


def test_missing_files_are_refused_before_jobs_run(tmp_path: Path, log: SampleLog) -> None:
    study = find_studies(["table1"], training=tmp_path / "none.txt", profiles=log.profiles)[0]
    with pytest.raises(InvalidInputError, match="training file must be readable"):
        study.sweep(0, quick=True)
    study = find_studies(["table1"], training=log.training, profiles=tmp_path)[0]
    with pytest.raises(InvalidInputError, match="profile file must be a file"):
        study.sweep(0, quick=True)


def test_an_unwritable_temporary_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match=r"temporary files must be writable \(no such file"):
        SampleLogJob(name="sample-log", rows=100, seed=2).run(workers=1, advance=lambda _: None)
