"""From an extraction to problems and to what there is to say about them."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.handwritten_log import GOOD, row, write_log

from banditrank import InvalidInputError, UnknownNameError, estimate, kdd2012
from banditrank.logs.kdd2012._diagnosis import diagnose
from banditrank.logs.kdd2012._estimation import estimated_problem
from banditrank.logs.kdd2012._extraction import extract
from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log


def test_a_known_problem_is_recovered_by_both_estimators(tmp_path: Path) -> None:
    """Bounds of six standard deviations or more of each estimate; the seed is fixed."""
    original = kdd2012()
    log = write_sample_log(original, tmp_path, n_rows=300_000, seed=21)
    diagnosis = diagnose(extract(log.training, log.profiles))
    for made in (diagnosis.paper, diagnosis.likelihood):
        problem = made.problem
        assert problem.items == original.items
        assert problem.user_types == original.user_types
        assert np.abs(problem.arrival_rates - original.arrival_rates).max() < 0.01
        assert np.abs(problem.position_preferences - original.position_preferences).max() < 0.02
        assert np.abs(problem.item_means - original.item_means).max() < 0.06
        assert not made.clipped
        assert not made.excluded
    assert diagnosis.notes() == ["every cell has displays"]


def test_problems_hold_the_estimates(sample_log: SampleLog) -> None:
    extraction = extract(sample_log.training, sample_log.profiles)
    for name in ("paper", "likelihood"):
        made = estimated_problem(extraction, name, name="mine")
        found = estimate(extraction.counts, method=name)
        assert made.problem.name == "mine"
        assert np.array_equal(made.problem.position_preferences, found.position_preferences)
        assert np.array_equal(made.problem.item_means, found.item_means)
        assert np.array_equal(
            made.problem.arrival_rates, extraction.counts.arrivals / extraction.counts.arrivals.sum()
        )


def test_empty_cells_excluded_ads_clipped_means_and_unknown_codes_are_reported(tmp_path: Path) -> None:
    log = write_log(
        tmp_path,
        [
            *(row(1, position, user, click=1, impression=30) for position in (1, 2) for user in (1, 2)),
            row(2, 1, 1, click=20, impression=20),  # every display of it clicked; never at position 2
            row(2, 1, 2, impression=20, depth=7),  # never clicked
            row(2, 2, 2, impression=20),
        ],
    )
    diagnosis = diagnose(extract(log.training, log.profiles, n_ads=2))
    assert diagnosis.empty_cells == (("male", "ad-2", 2),)
    assert diagnosis.paper.excluded == (("male", "ad-2"), ("female", "ad-2"))
    assert diagnosis.paper.clipped == (("male", "ad-2", pytest.approx(2.0)),)
    assert diagnosis.paper.problem.item_means[0, 1] == 1.0
    assert diagnosis.likelihood.excluded == ()
    notes = diagnosis.notes()
    assert notes == [
        "empty cells: male ad-2 at position 2",
        "excluded from the paper's position preferences (an empty cell or no click): male ad-2; female ad-2",
        "means above 1, set to 1 (paper): male ad-2 2",
        "means above 1, set to 1 (likelihood): male ad-2 2",
        "training rows with a depth other than 1, 2, 3: 1",
    ]


def test_the_diagnosis_is_json(sample_log: SampleLog) -> None:
    diagnosis = diagnose(extract(sample_log.training, sample_log.profiles))
    values = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert values["rows"][-1] == {
        "reason": "all rows",
        "rows": 20_000,
        "impressions": diagnosis.extraction.total.impressions,
        "clicks": diagnosis.extraction.total.clicks,
    }
    assert sum(group["rows"] for group in values["rows"][:-1]) == 20_000
    assert values["estimates"]["paper"]["item_means"] == diagnosis.paper.problem.item_means.tolist()
    assert values["counts"]["displays"] == diagnosis.extraction.counts.displays.tolist()


def test_a_log_without_one_of_the_genders_makes_no_problem(tmp_path: Path) -> None:
    log = write_log(tmp_path, GOOD, ["1\t1\t1", "2\t1\t1"])
    with pytest.raises(
        InvalidInputError, match=r"training file must have impressions .* female users, got 0"
    ):
        diagnose(extract(log.training, log.profiles, n_ads=2))


def test_an_unknown_estimator_is_refused(sample_log: SampleLog) -> None:
    extraction = extract(sample_log.training, sample_log.profiles)
    with pytest.raises(UnknownNameError, match=r"estimator must be one of paper, likelihood .*got 'papers'"):
        estimated_problem(extraction, "papers")
