"""A type-blind policy ranks and learns as the policy does on counts pooled over user types."""

import numpy as np
import pytest

from banditrank import (
    Forgetful,
    InvalidInputError,
    ThompsonRank,
    TypeBlind,
    TypeBlindUCB,
    UCBRank,
    kdd2012,
    make_policy,
    simulate,
)
from banditrank.policies._catalog import TYPE_BLIND_NAMES
from banditrank.policies._uniform import UniformRandom

HORIZON = 2_000


def test_the_wrapper_of_ucb_rank_is_the_papers_baseline() -> None:
    mine, theirs = TypeBlind(UCBRank(coefficient=0.25)), TypeBlindUCB(coefficient=0.25)
    runs = [simulate(policy, kdd2012(), HORIZON, 2, seed=5, workers=1) for policy in (mine, theirs)]
    assert np.array_equal(runs[0].regret, runs[1].regret)
    assert (mine.name, theirs.name) == ("type-blind-ucb-rank", "type-blind-ucb")


def test_a_type_blind_policy_shows_all_user_types_the_same() -> None:
    counts = simulate(ThompsonRank(), kdd2012(), HORIZON, 1, 1, workers=1, keep_counts=True).counts[0]
    policy = TypeBlind(ThompsonRank())
    rankings = [policy.rank(counts, user_type, rng=np.random.default_rng(3)) for user_type in (0, 1)]
    assert np.array_equal(*rankings)
    pooled = ThompsonRank().rank(counts.pooled(), 0, rng=np.random.default_rng(3))
    assert np.array_equal(rankings[0], pooled)


def test_treatment_and_utility_are_what_regret_is_measured_against() -> None:
    policy = make_policy("type-blind-thompson-rank", treatment="equal", utility="nash")
    assert policy.describe()["policy"] == "type-blind-thompson-rank"
    assert (policy.treatment, policy.describe()["utility"]) == ("equal", "nash")
    assert policy.policy.treatment == "personalized"
    assert policy.fingerprint()["utility_sample"]


def test_a_window_may_be_inside_or_outside() -> None:
    inner, outer = (
        TypeBlind(Forgetful(UCBRank(coefficient=0.5), "window:100")),
        Forgetful(TypeBlind(UCBRank(coefficient=0.5)), "window:100"),
    )
    runs = [simulate(policy, kdd2012(), HORIZON, 2, seed=5, workers=1) for policy in (inner, outer)]
    assert np.array_equal(runs[0].regret, runs[1].regret)
    assert str(make_policy("type-blind-ucb-rank", memory="window:100").memory) == "window:100"


@pytest.mark.parametrize("name", TYPE_BLIND_NAMES)
def test_every_learning_policy_can_be_type_blind(name: str) -> None:
    policy = make_policy(name, kdd2012(), horizon=HORIZON, click_model="position-based")
    assert not policy.distinguishes_user_types
    assert policy.treatment == "personalized"
    assert f"{policy.name}-ordered" == name if name.endswith("-ordered") else policy.name == name


def test_baselines_are_given_the_positions_of_the_average_user() -> None:
    problem = kdd2012()
    policy = make_policy("type-blind-pbm-ucb", problem)
    average = problem.arrival_rates @ problem.position_preferences
    assert policy.policy.examination[0] == pytest.approx(tuple(average))


def test_other_objects_and_options_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="policy must be a CompiledPolicy"):
        TypeBlind("ucb-rank")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInputError, match="solver must be left out for policy type-blind-thompson-rank"
    ):
        make_policy("type-blind-thompson-rank", solver="spatial")
    assert TypeBlind(UniformRandom()).name == "type-blind-random"
