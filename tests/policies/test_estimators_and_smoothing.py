"""GreedyRank and UCBRank with maximum-likelihood estimates, and with a smoothed start."""

import numpy as np
import pytest

from banditrank import (
    Counts,
    GreedyRank,
    InvalidInputError,
    Problem,
    Smoothing,
    UCBRank,
    UniformRandom,
    estimate,
    kdd2012,
    simulate,
)
from banditrank.policies._recomputed_ranking import init_recomputed_estimates

TREATMENTS = [
    "personalized",
    pytest.param("equal", marks=pytest.mark.campaign),  # of states that no other test compiles
]
RARE = Problem([0.5, 0.5], kdd2012().position_preferences, kdd2012().item_means * 0.05, name="rare clicks")


@pytest.mark.parametrize("treatment", TREATMENTS)
def test_recomputed_and_running_estimates_give_the_same_regret(treatment: str) -> None:
    class Slow(UCBRank):
        _uses_running_estimates = False

    settings = {"problem": kdd2012(), "horizon": 20_000, "replications": 3, "seed": 4}
    lean = simulate(UCBRank(coefficient=2.0, treatment=treatment), **settings)
    slow = simulate(Slow(coefficient=2.0, treatment=treatment), **settings)
    assert slow.initial_rounds.tolist() == lean.initial_rounds.tolist()
    # Under equal treatment the shares of types are smoothed, which may change a ranking now and then.
    assert slow.final_regret == pytest.approx(
        lean.final_regret, rel=1e-9 if treatment == "personalized" else 0.2
    )


@pytest.mark.parametrize("smoothing", [None, Smoothing(), Smoothing(3.0, 0.2)])
@pytest.mark.parametrize("estimator", ["paper", "likelihood"])
def test_estimates_follow_the_counts(estimator: str, smoothing: Smoothing | None) -> None:
    policy = UCBRank(coefficient=1.0, estimator=estimator, smoothing=smoothing)
    counts = simulate(policy, kdd2012(), 5_000, 1, 2, keep_counts=True).counts[0]
    smoothed = None if smoothing is None else smoothing.smoothed(counts)
    estimates = init_recomputed_estimates(
        counts, np.ones(1, dtype=np.int64), smoothed, by_likelihood=estimator == "likelihood"
    )
    seen = counts
    if smoothed is not None:
        displays, rewards = smoothed
        seen = Counts.from_arrays(
            displays.transpose(0, 2, 1), rewards.transpose(0, 2, 1), counts.arrivals, counts.rounds
        )
    expected = estimate(seen, method="likelihood") if estimator == "likelihood" else estimate(seen)
    assert estimates.evidence.preferences == pytest.approx(expected.position_preferences, abs=1e-4)
    assert estimates.means == pytest.approx(expected.item_means, rel=1e-3)
    assert estimates.exposures == pytest.approx(expected.exposure, rel=1e-3)


def test_a_smoothed_start_needs_no_click_in_every_cell() -> None:
    phase = simulate(UCBRank(coefficient=0.5), RARE, 3_000, 5, 1)
    smoothed = simulate(UCBRank(coefficient=0.5, smoothing=Smoothing()), RARE, 3_000, 5, 1)
    assert phase.initial_rounds.min() > 1_000
    assert smoothed.initial_rounds.max() == 0


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("policy", [GreedyRank, UCBRank])
def test_smoothed_likelihood_learns(policy: type, treatment: str) -> None:
    # The median of 20 replications loses less than a tenth of what random rankings do.
    settings = {"problem": kdd2012(), "horizon": 40_000, "replications": 20, "seed": 3}
    learns = policy(coefficient=0.5, treatment=treatment, estimator="likelihood", smoothing=Smoothing())
    learned = simulate(learns, **settings)
    random = simulate(UniformRandom(treatment=treatment), **settings)
    assert learned.median[-1] < 0.1 * random.median[-1]


def test_labels_tell_them_apart() -> None:
    labels = {
        simulate(policy, kdd2012(), 10, 1, 0).label
        for policy in (
            UCBRank(coefficient=0.5),
            UCBRank(coefficient=0.5, estimator="likelihood"),
            UCBRank(coefficient=0.5, smoothing=Smoothing()),
            UCBRank(coefficient=0.5, estimator="likelihood", smoothing=Smoothing()),
        )
    }
    assert labels == {
        "ucb-rank-personalized-0.5",
        "ucb-rank-personalized-0.5-likelihood",
        "ucb-rank-personalized-0.5-smoothed",
        "ucb-rank-personalized-0.5-likelihood-smoothed",
    }


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"estimator": "bayes"}, "estimator"),
        ({"smoothing": 1.0}, "smoothing"),
        ({"smoothing": "1:0.5"}, "smoothing"),
    ],
)
def test_wrong_choices_are_refused(options: dict, field: str) -> None:
    with pytest.raises(InvalidInputError, match=field):
        UCBRank(coefficient=0.5, **options)


@pytest.mark.parametrize("options", [{"displays": 0}, {"mean": 0}, {"mean": 1.5}, {"displays": float("nan")}])
def test_wrong_pseudo_counts_are_refused(options: dict) -> None:
    with pytest.raises(InvalidInputError, match="smoothing"):
        Smoothing(**options)
