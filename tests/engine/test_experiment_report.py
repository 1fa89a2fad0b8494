"""Reports of experiments, from sums over visits."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from banditrank.engine import Arm, SurfaceExperiment, report_experiment
from banditrank.errors import InvalidInputError
from banditrank.estimators import RewardSums, lift_confidence_sequence, mean_confidence_sequence

HOLD_OUT = SurfaceExperiment("autumn", [Arm("hold-out", 0.05)])
TYPES = ["new", "old"]


def test_without_visits_nothing_is_established() -> None:
    nothing = np.zeros((2, 2))
    report = report_experiment(HOLD_OUT, TYPES, nothing, nothing, nothing)
    policy, arm = report.arms
    assert (policy.name, policy.share, policy.lift, policy.user_types) == ("policy", 0.95, None, [])
    assert asdict(arm.reward_per_visit) == {"estimate": None, "low": 0, "high": 1}
    assert not arm.lift.is_established
    assert asdict(arm.lift.absolute) == {"estimate": None, "low": -1, "high": 1}
    assert asdict(arm.lift.relative) == {"estimate": None, "low": -1, "high": None}
    assert arm.lift.sentence == "policy and hold-out do not both have visits yet"


def test_the_report_has_the_intervals_of_the_sums() -> None:
    visits, clicks = np.array([[9000, 10_000], [400, 600]]), np.array([[700, 630], [25, 15]])
    report = report_experiment(HOLD_OUT, TYPES, visits, clicks, clicks)
    assert (report.experiment, report.level, report.visits) == ("autumn", 0.95, 20_000)
    arm = report.arms[1]
    assert (arm.visits, arm.reward_per_visit.estimate) == (1000, 0.04)
    mean = mean_confidence_sequence(RewardSums(1000, 40, 40), level=0.975)
    assert (arm.reward_per_visit.low, arm.reward_per_visit.high) == pytest.approx(
        (float(mean.low), float(mean.high))
    )
    for lift, treatment, baseline, level in (
        (arm.lift, (19_000, 1330), (1000, 40), 0.95),
        (arm.user_types[0].lift, (9000, 700), (400, 25), 0.975),
        (arm.user_types[1].lift, (10_000, 630), (600, 15), 0.975),
    ):
        sums = [RewardSums(n, x, x) for n, x in (treatment, baseline)]
        expected = lift_confidence_sequence(*sums, treatment_share=0.95, level=level)
        for given, sequence in ((lift.absolute, expected.absolute), (lift.relative, expected.relative)):
            assert given.estimate == pytest.approx(float(sequence.estimates))
            assert (given.low, given.high) == pytest.approx((float(sequence.low), float(sequence.high)))
    first = arm.user_types[0]
    assert (first.user_type, first.visits, first.policy_visits) == ("new", 400, 9000)
    assert (first.reward_per_visit, first.policy_reward_per_visit) == pytest.approx((0.0625, 700 / 9000))


@pytest.mark.parametrize(
    ("policy", "baseline", "start"),
    [
        (2000, 50, "policy gets 0.0553 more reward per visit than hold-out (between"),
        (400, 100, "policy gets 0.0789 less reward per visit than hold-out (between"),
        (
            1000,
            52,
            "no difference between policy and hold-out is established (lift per visit between -",
        ),
        (2000, 0, "policy gets 0.105 more reward per visit than hold-out (between"),
    ],
)
def test_sentences_say_whether_a_difference_is_established(policy: int, baseline: int, start: str) -> None:
    clicks = [[policy], [baseline]]
    lift = report_experiment(HOLD_OUT, ["all"], [[19_000], [1000]], clicks, clicks).arms[1].lift
    assert lift.sentence.startswith(start)
    assert lift.is_established == start.startswith("policy gets")
    assert lift.is_established == (lift.absolute.low > 0 or lift.absolute.high < 0)
    assert ("to more)" in lift.sentence) == (baseline == 0), "the relative lift has no upper end"


def test_several_arms_share_the_error_rate() -> None:
    arms = [Arm(f"arm-{n}", 0.1) for n in range(5)]
    clicks = np.full((6, 1), 60)
    visits = np.full((6, 1), 1000)
    many = report_experiment(SurfaceExperiment("abn", arms), ["all"], visits, clicks, clicks)
    one = report_experiment(SurfaceExperiment("ab", arms[:1]), ["all"], visits[:2], clicks[:2], clicks[:2])
    assert many.arms[3].lift.absolute.low < one.arms[1].lift.absolute.low
    assert [arm.name for arm in many.arms] == ["policy", *(f"arm-{n}" for n in range(5))]


def test_periods_with_other_shares_are_weighted() -> None:
    # No difference in either period; rates and the hold-out's share grow.
    visits = np.array([[[95_000], [5000]], [[50_000], [50_000]]])
    clicks = visits * np.array([0.02, 0.1])[:, None, None]
    shares = [[0.95, 0.05], [0.5, 0.5]]
    experiment = SurfaceExperiment("autumn", [Arm("hold-out", 0.5)])
    report = report_experiment(experiment, ["all"], visits, clicks, clicks, period_shares=shares)
    assert not report.arms[1].lift.is_established
    assert report.arms[1].lift.absolute.estimate == pytest.approx(0, abs=1e-12)
    pooled = report_experiment(experiment, ["all"], visits.sum(0), clicks.sum(0), clicks.sum(0))
    assert pooled.arms[1].lift.is_established


def test_an_arm_is_compared_with_the_policy_of_its_own_periods() -> None:
    # The second arm starts when rates double.
    visits = np.array([[[9000], [1000], [0]], [[8000], [1000], [1000]]])
    clicks = visits * np.array([0.05, 0.1])[:, None, None]
    shares = [[0.9, 0.1, 0.0], [0.8, 0.1, 0.1]]
    experiment = SurfaceExperiment("autumn", [Arm("a", 0.1), Arm("b", 0.1)])
    report = report_experiment(experiment, ["all"], visits, clicks, clicks, period_shares=shares)
    assert report.arms[2].user_types[0].policy_visits == 8000
    assert [arm.lift.absolute.estimate for arm in report.arms[1:]] == pytest.approx([0, 0], abs=1e-12)


def test_several_clicks_need_their_bound() -> None:
    visits, clicks, squares = [[500], [500]], [[700], [400]], [[1600], [900]]
    report = report_experiment(HOLD_OUT, ["all"], visits, clicks, squares, max_reward=5)
    assert report.arms[0].reward_per_visit.estimate == pytest.approx(1.4)
    with pytest.raises(InvalidInputError, match="rewards must be at most 1 per visit, got 700"):
        report_experiment(HOLD_OUT, ["all"], visits, clicks, squares)


def test_reports_are_json() -> None:
    clicks = [[19, 1], [0, 0]]
    report = report_experiment(HOLD_OUT, TYPES, [[19, 2], [1, 0]], clicks, clicks)
    assert json.loads(json.dumps(asdict(report), allow_nan=False))["arms"][1]["name"] == "hold-out"


@pytest.mark.parametrize(
    ("visits", "shares", "message"),
    [
        ([[1, 1]], None, r"visits must have shape \(1, 2, 2\), got \(1, 1, 2\)"),
        ([[1, 1], [1, 1]], [[0.9, 0.1], [0.5, 0.5]], r"visits must have shape \(2, 2, 2\), got \(2, 2\)"),
        ([[1, 1], [1, 1]], [0.9, 0.1], r"period_shares must have shape \(periods, 2\), got \(2,\)"),
        ([[1, 1], [1, 1]], [[0.0, 0.1]], "period_shares must be from 0 to 1, and above 0 for the policy"),
    ],
)
def test_arrays_of_the_wrong_shape_are_rejected(visits: list, shares: list | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        report_experiment(HOLD_OUT, TYPES, visits, visits, visits, period_shares=shares)
