"""Reports and documents of surfaces with position-based clicks: looks have maximum 1, values may exceed 1."""

from typing import Any

import numpy as np
import pytest
from helpers.live import ITEMS, TYPES, a_monitored_ranker, a_surface

from banditrank import Counts, GreedyRank, Problem, confidence_intervals, estimate, simulate
from banditrank.dashboard._assessment import assess
from banditrank.dashboard._documents import counts_document, estimates_document
from banditrank.dashboard._estimates_report import report_estimates
from banditrank.dashboard._explain import _estimates, _of_user_type
from banditrank.dashboard._posterior_samples import PosteriorSamples, quantile_interval
from banditrank.dashboard._recent_impressions import RecentImpressions
from banditrank.dashboard._surface_problem import SurfaceProblem
from banditrank.dashboard._treatment_report import report_treatments
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.engine._policy_snapshot import PolicySnapshot
from banditrank.engine._served_policies import served_policy
from banditrank.engine._surface import Surface
from banditrank.model._click_models import PositionBased, compile_problem
from banditrank.policies.schedules import constant
from banditrank.solvers._optimum import best_values
from banditrank.storage._cells import decode_cells, encode_cells
from banditrank.storage._records import NOT_CLICKED, Event, Impression, pack_ranking

PROBLEM = Problem(
    [0.5, 0.5],
    [[0.6, 0.4], [0.4, 0.6]],
    [[0.95, 0.9, 0.3, 0.2, 0.1], [0.2, 0.85, 0.8, 0.4, 0.1]],
    user_types=TYPES,
    items=ITEMS,
)
MODEL = PositionBased()
EXPLORES = GreedyRank(schedule=constant(coefficient=1.0))  # shows items in turn, at all positions
LOOKS = MODEL.position_weights(PROBLEM)


def position_based(**settings: Any) -> Surface:
    surface = a_surface(**settings)
    object.__setattr__(surface, "click_model", "position-based")
    policy = served_policy(
        surface.policy,
        treatment=surface.treatment,
        utility=surface.utility,
        coefficient=surface.coefficient,
        click_model="position-based",
    )
    object.__setattr__(surface, "compiled_policy", policy)
    return surface


def counts_of(horizon: int, seed: int = 1) -> Counts:
    result = simulate(EXPLORES, PROBLEM, horizon, 1, seed, keep_counts=True, click_model=MODEL, workers=1)
    return result.counts[0]


def surface_counts(horizon: int = 4000, **settings: Any) -> SurfaceCounts:
    return SurfaceCounts(position_based(**settings), 1, 7, counts_of(horizon))


def test_estimates_have_the_scale_of_the_click_model() -> None:
    given = surface_counts()
    report = report_estimates(given, level=0.9)
    estimates = estimate(given.counts, method="likelihood", click_model="position-based")
    intervals = confidence_intervals(given.counts, level=0.9, click_model="position-based")
    assert report.click_model == "position-based"
    for i, one in enumerate(report.user_types):
        assert [row.estimate for row in one.positions] == estimates.position_preferences[i].tolist()
        assert [[row.low, row.high] for row in one.positions] == intervals.position_preferences[i].tolist()
        assert [row.estimate for row in one.items] == estimates.item_means[i].tolist()
        assert [[row.low, row.high] for row in one.items] == intervals.item_means[i].tolist()
        assert max(row.estimate for row in one.positions) == 1
    single = report_estimates(given._replace(surface=a_surface()))
    assert single.click_model == "single-look"
    assert sum(row.estimate for row in single.user_types[0].positions) == pytest.approx(1)


@pytest.mark.parametrize("settings", [{}, {"treatment": "equal", "utility": "nash"}], ids=str)
def test_values_of_treatments_are_clicks_per_visit(settings: dict[str, Any]) -> None:
    # 4,000 visits: values have standard errors below 0.04.
    report = report_treatments(surface_counts(**settings))
    optimal = best_values(PROBLEM, equal=False, utility="utilitarian", click_model=MODEL)
    assert optimal.max() > 1
    values = [one.personalized_value for one in report.user_types]
    assert values == pytest.approx(optimal, abs=0.16)
    assert 0 <= report.price_of_equality < 0.5
    assert sum(one.so_far.looks for one in report.items) == pytest.approx(1)


@pytest.mark.parametrize("treatment", ["personalized", "equal"])
def test_regret_is_that_of_the_click_model(treatment: str) -> None:
    surface_problem = SurfaceProblem(PROBLEM, position_based(treatment=treatment))
    is_equal = treatment == "equal"
    optimal = best_values(PROBLEM, equal=is_equal, utility="utilitarian", click_model=MODEL)
    compiled = compile_problem(PROBLEM, click_model=MODEL)
    ranking = (3, 0)
    values = np.array([MODEL.value(compiled, i, np.array(ranking, dtype=np.uintp)) for i in range(2)])
    assert surface_problem.values(np.array(ranking)) == pytest.approx(values)
    assert surface_problem.position_preferences == pytest.approx(LOOKS)
    expected = optimal[0] - PROBLEM.arrival_rates @ values if is_equal else optimal[1] - values[1]
    cells = decode_cells(encode_cells([Event(Impression(1, b"", pack_ranking(1, ranking)), NOT_CLICKED)]))
    assert surface_problem.regret(cells) == pytest.approx(expected)
    means = PROBLEM.item_means.mean(axis=1)
    assert surface_problem.random_values == pytest.approx(LOOKS.sum(axis=1) * means)


@pytest.mark.parametrize("settings", [{}, {"treatment": "equal", "utility": "nash"}], ids=str)
def test_the_document_has_the_scale_of_the_click_model(settings: dict[str, Any]) -> None:
    given = surface_counts(**settings)
    assessment = assess(given)
    with a_monitored_ranker(given.surface) as ranker:
        recent = RecentImpressions(ranker.monitor)
        counts = counts_document(ranker._runtime, recent, ranker.monitor.last_hour(), [], now=1e9)
        document = estimates_document(assessment, None, recent)
        known = estimates_document(assessment, SurfaceProblem(PROBLEM, given.surface), recent)
    assert counts["surface"]["click_model"] == "position-based"
    preferences = [[one["estimate"] for one in row] for row in document["positions"]]
    means = [[one["estimate"] for one in row] for row in document["items"]]
    assert np.max(preferences, axis=1).tolist() == [1, 1]
    expected = np.sum(preferences, axis=1) * np.mean(means, axis=1)
    assert document["random"] == pytest.approx(expected)
    assert known["random"] == pytest.approx(LOOKS.sum(axis=1) * PROBLEM.item_means.mean(axis=1))
    assert [one["true_value"] for one in known["positions"][0]] == pytest.approx(LOOKS[0])
    for treatment in document["treatments"]:
        rankings = treatment["rankings"] * (2 if "utility" in treatment else 1)
        for i, ranking in enumerate(rankings):
            value = np.dot(preferences[i], np.array(means[i])[ranking])
            assert treatment["value"][i] == pytest.approx(value)
            assert treatment["low"][i] <= treatment["value"][i] <= treatment["high"][i]
    assert max(document["treatments"][0]["value"]) > 1


def test_explanations_by_estimates_have_the_scale_of_the_click_model() -> None:
    surface, _, version, counts, _ = surface_counts(policy="greedy-rank")
    snapshot = PolicySnapshot(surface, 1, version, counts)
    for beliefs in (_estimates(snapshot), _of_user_type(_estimates(snapshot), 1)):
        assert (beliefs.position_preferences.max(axis=1) == 1).all()
        assert beliefs.item_means.max() <= 1
    sampled = PolicySnapshot(position_based(), 1, version, counts).sampled_problem(0, b"12345678")
    assert sampled is not None
    assert sampled.position_preferences.max() == 1


def test_posterior_intervals_cover_the_values_of_rankings() -> None:
    # 100 runs of 200 visits and two types: of 200 intervals at level 0.9, more than 38 misses have a
    # probability below 1e-4.
    ranking, misses = np.array([1, 2]), 0
    truth = (LOOKS * PROBLEM.item_means[:, ranking]).sum(axis=1)
    runs = simulate(EXPLORES, PROBLEM, 200, 100, 5, keep_counts=True, click_model=MODEL, workers=1)
    for counts in runs.counts:
        samples = PosteriorSamples(counts, seed=1, click_model="position-based")
        for i in range(2):
            drawn = samples.of_user_type(i)
            assert (drawn.position_preferences.max(axis=1) == 1).all()
            assert drawn.item_means.max() <= 1
            values = drawn.values(ranking)
            low, high = quantile_interval(values, 0.9, including=float(values.mean()))
            misses += not low <= truth[i] <= high
    assert misses <= 38
