"""Table 1: extracted again from a log that was drawn from it, and from files of the user's own."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from banditrank import InvalidInputError, kdd2012
from banditrank.experiments.catalog import find_studies
from banditrank.experiments.table1 import STUDY
from banditrank.experiments.table1.sweep import SampleLogPart
from banditrank.logs.kdd2012.sample_log import SampleLog, write_sample_log


@pytest.fixture(scope="module")
def sample() -> pd.DataFrame:
    return SampleLogPart(name="sample-log", rows=20_000, seed=2).run(workers=1, advance=lambda _: None)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> SampleLog:
    return write_sample_log(kdd2012(), tmp_path_factory.mktemp("log"), n_rows=5000, seed=4)


def test_every_figure_of_the_table_is_estimated_twice(sample: pd.DataFrame) -> None:
    kinds = sample.groupby(["estimator", "figure"]).size()
    assert kinds.to_dict() == {
        (estimator, figure): count
        for estimator in ("paper", "likelihood")
        for figure, count in (("arrival rate", 2), ("item mean", 10), ("position preference", 4))
    }
    assert (sample["displays"] > 0).all()


def test_the_log_is_the_same_each_time(sample: pd.DataFrame) -> None:
    again = SampleLogPart(name="sample-log", rows=20_000, seed=2).run(workers=2, advance=lambda _: None)
    pd.testing.assert_frame_equal(sample, again)


def test_without_files_it_is_said_that_they_are_not_checked(sample: pd.DataFrame) -> None:
    reading = STUDY.read({"sample-log": sample})
    assert [check.holds for check in reading.checks] == [True, None]
    assert reading.verdict == "not checked"
    assert reading.findings.endswith("so whether they give the table is not checked.")
    printed = {(row[0], row[1]): row[2] for row in reading.tables[0].rows}
    assert printed["mean of ad-4", "male"] == "0.808"
    assert printed["looks at position 2", "female"] == "0.584"
    assert printed["arrival rate", "female"] == "0.480"
    assert len(reading.tables[0].rows) == 16


def test_estimates_that_are_off_are_noticed(sample: pd.DataFrame) -> None:
    off = sample.assign(estimate=sample["estimate"] + np.where(sample["number"] == 4, 0.5, 0.0))
    reading = STUDY.read({"sample-log": off})
    assert reading.checks[0].holds is False
    assert reading.findings.startswith("The estimators do not find Table 1 again")


def test_raw_files_that_give_the_table_agree_and_others_do_not(sample: pd.DataFrame) -> None:
    exact = sample.assign(estimate=sample["estimate"].where(sample["estimator"] != "paper", np.nan))
    printed = STUDY.read({"sample-log": sample}).tables[0].rows
    exact.loc[exact["estimator"] == "paper", "estimate"] = [float(row[2]) for row in printed]
    same, another = (STUDY.read({"sample-log": sample, "raw-files": raw}) for raw in (exact, sample))
    assert same.verdict == "agrees"
    assert "From the raw files the same table is extracted: 16 of 16" in same.findings
    assert another.checks[1].holds is False
    assert another.verdict == "disagrees"
    assert "From the raw files another table is extracted" in another.findings
    assert len(another.tables) == 2


def test_files_of_the_users_own_are_a_part(log: SampleLog) -> None:
    study = find_studies(["table1"], training=log.training, profiles=log.profiles)[0]
    parts = study.sweep(0, quick=True)
    assert [part.name for part in parts] == ["sample-log", "raw-files"]
    assert parts[1].work > 0
    before = parts[1].digest()
    frame = parts[1].run(workers=1, advance=lambda _: None)
    assert len(frame) == 32
    with log.training.open("a") as file:
        file.write(log.training.read_text().splitlines()[0] + "\n")
    assert study.sweep(0, quick=True)[1].digest() != before


def test_files_that_are_not_there_are_told_before_the_work(tmp_path: Path, log: SampleLog) -> None:
    study = find_studies(["table1"], training=tmp_path / "none.txt", profiles=log.profiles)[0]
    with pytest.raises(InvalidInputError, match="training file must be readable"):
        study.sweep(0, quick=True)
    study = find_studies(["table1"], training=log.training, profiles=tmp_path)[0]
    with pytest.raises(InvalidInputError, match="profile file must be a file"):
        study.sweep(0, quick=True)


def test_a_log_that_cannot_be_written_anywhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match=r"temporary files must be writable \(no such file"):
        SampleLogPart(name="sample-log", rows=100, seed=2).run(workers=1, advance=lambda _: None)
