"""Studies are found by name, in the order of the paper."""

import re
from pathlib import Path

import pytest

from banditrank import InvalidInputError
from banditrank.errors import UnknownNameError
from banditrank.experiments._reproduce import STUDIES, find_studies

ALL = ["synthetic", "kdd2012", "table1", "table2", "regret-order", "lemmas", "lock-in", "lotteries"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([], ALL),
        (["all"], ALL),
        (["lemmas", "all"], ALL),
        (["lock-in", "table1", "lock-in"], ["table1", "lock-in"]),
    ],
)
def test_names_find_studies(names: list[str], found: list[str]) -> None:
    assert [study.name for study in find_studies(names)] == found


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match=r"study must be one of all, .* \(did you mean table2\?\)"):
        find_studies(["table3"])


def test_files_come_in_pairs() -> None:
    with pytest.raises(InvalidInputError, match="training must be given together with the profile file"):
        find_studies(training=Path("training.txt"))


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_a_claim_has_two_sentences(study: object) -> None:
    assert len(re.findall(r"\.(?= |$)", study.claim)) == 2
    assert study.quick_scale
    assert not study.quick_scale.endswith(".")


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_job_names_are_unique_and_digests_depend_on_seed_and_quick(study: object) -> None:
    digests = {}
    for seed, quick in ((0, False), (0, True), (1, False)):
        jobs = study.sweep(seed, quick=quick)
        assert len({job.name for job in jobs}) == len(jobs)
        assert all(job.estimated_seconds > 0 and job.n_steps >= 1 for job in jobs)
        digests[seed, quick] = [job.digest() for job in jobs]
    assert digests[0, False] == [job.digest() for job in study.sweep(0, quick=False)]
    for other in ((0, True), (1, False)):
        assert not set(digests[0, False]) & set(digests[other])


def test_files_without_their_study_are_refused() -> None:
    files = {"training": Path("training.txt"), "profiles": Path("userid_profile.txt")}
    with pytest.raises(InvalidInputError, match="training must be left out without the study table1"):
        find_studies(["kdd2012"], **files)
    assert len(find_studies(["table1", "kdd2012"], **files)) == 2
