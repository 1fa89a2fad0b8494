"""Confidence sequences: coverage at every look, and the laws of their construction."""

import numpy as np
import pytest
from helpers.simulated_experiments import KINDS, SimulatedExperiment, detection_visits, watch
from hypothesis import given, settings
from hypothesis import strategies as st

from banditrank.errors import InvalidInputError
from banditrank.estimators import RewardSums, lift_confidence_sequence, mean_confidence_sequence
from banditrank.estimators._confidence_sequences import (
    _BETS,
    _TYPICAL_BET,
    _log_limit,
    _LogWealth,
    _make_bets,
)

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@kinds
def test_lifts_are_covered_at_every_look(kind: SimulatedExperiment) -> None:
    # At most 5% of the experiments may miss: 8 of 60 or more do so with probability 1% then. At a rate of 25%
    # the test fails with probability 98%.
    watched = [watch(kind, np.random.default_rng([1, run]), 2000) for run in range(60)]
    assert sum(one.may_miss_lift.any() for one in watched) < 8
    assert sum(one.misses_mean.any() for one in watched) < 13, "two means, each at its own level"


@pytest.mark.campaign
@kinds
def test_lifts_are_covered_at_every_look_of_200_experiments(kind: SimulatedExperiment) -> None:
    # At most 5% of the experiments may miss: 19 of 200 or more do so with probability 0.6% then. At a rate of
    # 15% the test fails with probability 99%. Of two means at most 10%: 32 or more with probability 0.5%; at
    # a rate of 20% the test fails with probability 94%.
    index = KINDS.index(kind)
    n_lift = n_mean = 0
    for run in range(200):
        watched = watch(kind, np.random.default_rng([index, run]), kind.horizon)
        n_lift += watched.may_miss_lift.any()
        n_mean += watched.misses_mean.any()
    assert n_lift < 19
    assert n_mean < 32, "two means, each at its own level"


@kinds
def test_intervals_contain_the_truth_unless_the_wealth_exceeds_the_limit(kind: SimulatedExperiment) -> None:
    rng = np.random.default_rng(5)
    watched = watch(kind, rng, 20_000)
    looks = np.unique(np.geomspace(1, 20_000, 25).astype(int)) - 1
    policy, baseline = watched.policy.select(looks), watched.baseline.select(looks)
    lift = lift_confidence_sequence(policy, baseline, treatment_share=kind.policy_share)
    truth = watched.policy_means[looks], watched.baseline_means[looks]
    for sequence, true in ((lift.absolute, truth[0] - truth[1]), (lift.relative, truth[0] / truth[1] - 1)):
        is_covered = (sequence.low <= true + 1e-9) & (true <= sequence.high + 1e-9)
        assert (is_covered | watched.may_miss_lift[looks]).all()
    covered = [
        (sequence.low <= true) & (true <= sequence.high)
        for sequence, true in zip(map(mean_confidence_sequence, (policy, baseline)), truth, strict=True)
    ]
    assert ((covered[0] & covered[1]) != watched.misses_mean[looks]).all()


@pytest.mark.parametrize("max_reward", [0.2, 1, 5, 20, 100])
@pytest.mark.parametrize("weight", [1, 10])
@pytest.mark.parametrize("sign", [1, -1])
def test_parabolas_are_below_the_logarithm(sign: int, max_reward: float, weight: float) -> None:
    # What makes the wealth that is computed from sums at most that of the bets.
    bets = _make_bets(sign, 0.1, max_reward, max_reward * weight)
    rewards = np.linspace(0, max_reward * weight, 1001)[:, None]
    parabolas = bets.linear * rewards - bets.quadratic * rewards**2
    assert (parabolas <= np.log1p(bets.sizes * rewards) + 1e-12).all()
    assert bets.shares.sum() <= 1 + 1e-12
    assert weight > 1 or bets.shares.sum() == pytest.approx(1)


def test_clicks_are_bet_on_by_likelihood_ratios() -> None:
    for sign in (1, -1):
        bets = _make_bets(sign, 0.1, 1.0, 1.0)
        assert bets.linear - bets.quadratic == pytest.approx(np.log1p(bets.sizes))


def test_without_visits_intervals_are_the_whole_range() -> None:
    nothing, some = RewardSums(0, 0, 0, max_reward=3), RewardSums(500, 50, 70, max_reward=3)
    mean = mean_confidence_sequence(nothing)
    assert (np.isnan(mean.estimates), mean.low, mean.high) == (True, 0, 3)
    for lift in (lift_confidence_sequence(nothing, nothing), lift_confidence_sequence(some, nothing)):
        assert np.isnan(lift.absolute.estimates)
        assert np.isnan(lift.relative.estimates)
        assert lift.absolute.low == -3
        assert (lift.relative.low, lift.relative.high) == (-1, np.inf)


def test_the_first_visits_say_nothing() -> None:
    for reward in (0, 1):
        one = RewardSums(1, reward, reward)
        lift = lift_confidence_sequence(one, RewardSums(1, 1 - reward, 1 - reward))
        assert (lift.absolute.low, lift.absolute.high) == (-1, 1)
        mean = mean_confidence_sequence(one)
        assert mean.low < 0.05
        assert mean.high > 0.95


def test_an_arm_without_rewards_is_found_to_be_worse() -> None:
    lift = lift_confidence_sequence(RewardSums(1000, 50, 50), RewardSums(1000, 0, 0))
    assert lift.absolute.low > 0
    assert lift.relative.low > 0
    assert lift.relative.high == np.inf
    assert np.isnan(lift.relative.estimates)


sums = st.integers(0, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@settings(max_examples=settings.default.max_examples // 2)
@given(sums, sums, st.sampled_from([1, 4]), st.floats(0.05, 0.95))
def test_lifts_are_consistent(
    treatment: tuple[int, int], baseline: tuple[int, int], max_reward: float, share: float
) -> None:
    arms = [RewardSums(n, s, s, max_reward) for n, s in (treatment, baseline)]
    lift = lift_confidence_sequence(*arms, treatment_share=share)
    absolute, relative = lift.absolute, lift.relative
    if treatment[0] and baseline[0]:
        assert absolute.low <= absolute.estimates <= absolute.high
        assert baseline[1] == 0 or relative.low - 1e-9 <= relative.estimates <= relative.high + 1e-9
    tiny = 1e-7
    if absolute.low > tiny or relative.low > tiny:
        assert absolute.low > 0 < relative.low, "both exclude 0, or none"
    if absolute.high < -tiny or relative.high < -tiny:
        assert absolute.high < 0 > relative.high
    swapped = lift_confidence_sequence(*arms[::-1], treatment_share=1 - share).absolute
    assert swapped.low == pytest.approx(-absolute.high, abs=1e-6)
    assert swapped.high == pytest.approx(-absolute.low, abs=1e-6)


@settings(max_examples=settings.default.max_examples // 2)
@given(sums, sums)
def test_ends_are_where_the_smallest_product_of_wealths_reaches_the_limit(
    treatment: tuple[int, int], baseline: tuple[int, int]
) -> None:
    arms = [RewardSums(n, s, s) for n, s in (treatment, baseline)]
    low = float(lift_confidence_sequence(*arms).absolute.low)
    grid = np.linspace(0, 1, 4001)
    wealths = []
    for arm, sign in zip(arms, (1, -1), strict=True):
        many = RewardSums(*(np.full(grid.shape, each) for each in (arm.visits, arm.rewards, arm.rewards)))
        wealths.append(_LogWealth(many, sign, 0.05)(grid)[0])

    def smallest(difference: float) -> float:
        shifted = np.interp(grid + difference, grid, wealths[0], left=np.inf, right=np.inf)
        return float((shifted + wealths[1]).min())

    assert low == -1 or smallest(low + 5e-4) <= _log_limit(0.95) + 0.02
    assert low == -1 or smallest(low - 5e-4) >= _log_limit(0.95) - 0.02


def test_intervals_narrow_with_visits_and_widen_with_the_level() -> None:
    n = np.array([1e3, 1e4, 1e5, 1e6])
    policy, baseline = RewardSums(n * 19, n, n), RewardSums(n, n / 20, n / 20)
    widths = {}
    for level in (0.9, 0.95, 0.99):
        lift = lift_confidence_sequence(policy, baseline, treatment_share=0.95, level=level).absolute
        widths[level] = lift.high - lift.low
        assert (np.diff(widths[level]) < 0).all()
    assert (widths[0.9] < widths[0.95]).all()
    assert (widths[0.95] < widths[0.99]).all()


@pytest.mark.parametrize(("policy_share", "ratio"), [(0.5, 1), (0.95, 19)])
def test_intervals_are_less_than_twice_as_wide_as_those_of_one_look(policy_share: float, ratio: int) -> None:
    n = np.array([1e4, 2e4, 1e5])  # 500 to 5,000 clicks in the smaller arm
    policy, baseline = (
        RewardSums(n * ratio, n * ratio * 0.05, n * ratio * 0.05),
        RewardSums(n, n / 20, n / 20),
    )
    lift = lift_confidence_sequence(policy, baseline, treatment_share=policy_share).absolute
    one_look = 1.96 * np.sqrt(0.05 * 0.95 * (1 / n + 1 / (ratio * n)))
    assert ((lift.high - lift.low) / 2 < 1.8 * one_look).all()


@pytest.mark.campaign
@pytest.mark.parametrize("policy_share", [0.5, 0.95])
def test_a_lift_of_ten_percent_is_found(policy_share: float) -> None:
    found = detection_visits(np.random.default_rng(8), 0.055, 0.05, policy_share, 300)
    variance = 0.055 * 0.945 / policy_share + 0.05 * 0.95 / (1 - policy_share)
    one_look = (1.96 + 0.84) ** 2 * variance / 0.005**2  # visits for a power of 80%
    # The ratios were 2.3 and 2.0, with standard errors of about 0.1.
    assert np.quantile(found, 0.8) < 2.7 * one_look


def test_merged_periods_with_constant_shares_are_plain_sums() -> None:
    periods = [RewardSums([100, 7], [5, 1], [5, 1]), RewardSums([300, 0], [9, 0], [9, 0])]
    merged = RewardSums.merge_periods(periods, [0.2, 0.2])
    plain = mean_confidence_sequence(RewardSums([400, 7], [14, 1], [14, 1]))
    sequence = mean_confidence_sequence(merged)
    assert sequence.low == pytest.approx(plain.low)
    assert sequence.high == pytest.approx(plain.high)


def test_weights_of_periods_undo_a_share_that_changed_with_the_click_rate() -> None:
    # No difference, but the baseline's share grew from 5 to 50% while clicks went from 2 to 10% of visits.
    visits = {"policy": [95_000, 50_000], "baseline": [5000, 50_000]}
    arms, plain = [], []
    for name, shares in (("policy", [0.95, 0.5]), ("baseline", [0.05, 0.5])):
        first, second = visits[name]
        periods = [
            RewardSums(first, first * 0.02, first * 0.02),
            RewardSums(second, second / 10, second / 10),
        ]
        arms.append(RewardSums.merge_periods(periods, shares))
        plain.append(RewardSums(first + second, first * 0.02 + second / 10, first * 0.02 + second / 10))
    assert [float(arm.means) for arm in arms] == pytest.approx([0.06, 0.06])
    weighted, unweighted = lift_confidence_sequence(*arms).absolute, lift_confidence_sequence(*plain).absolute
    assert weighted.low < 0 < weighted.high
    assert unweighted.high < 0, "the larger share is taken for a better arm"


@pytest.mark.parametrize("later_share", [0.5, 0.01])
def test_weighted_periods_are_covered_at_every_look(later_share: float) -> None:
    # Rates double in the second of two periods. At most 5% of 100 experiments may miss: 12 or more do so with
    # probability 0.4%.
    missed = 0
    n = np.arange(1, 1501)
    for run in range(100):
        rng = np.random.default_rng([3, run])
        first, second = rng.random(1500) < 0.05, rng.random(1500) < 0.1
        begun = RewardSums(np.full(1500, 1500), np.full(1500, first.sum()), np.full(1500, first.sum()))
        running = RewardSums(n, np.cumsum(second), np.cumsum(second))
        merged = RewardSums.merge_periods([begun, running], [0.1, later_share])
        weight = 0.1 / later_share
        truth = (1500 * 0.05 + weight * n * 0.1) / (1500 + weight * n)
        wealths = [_LogWealth(merged, sign, _TYPICAL_BET)(truth)[0] for sign in (1, -1)]
        missed += (np.maximum(*wealths) > _log_limit(0.95)).any()
    assert missed < 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1], [1]), r"rewards must have shape \(2,\), as visits, got \(1,\)"),
        ((10, 11, 11), "rewards must be at most 1 per visit, got 11"),
        ((10, 5, 6), "squared_rewards must be the squares of rewards from 0 to 1 with this sum, got 6"),
        ((10, 5, 2), "squared_rewards must be the squares"),
        ((-1, 0, 0), "visits must be finite and at least 0, got -1"),
        ((10, float("nan"), 0), "rewards must be finite"),
        (("many", 0, 0), "visits must be numbers, got 'many'"),
        ((1, 0, 0, 0), "max_reward must be a number from 1e-06 to 1,000, got 0"),
    ],
)
def test_invalid_sums_are_rejected(arguments: tuple, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RewardSums(*arguments)


def test_invalid_comparisons_are_rejected() -> None:
    one, two = RewardSums(10, 1, 1), RewardSums([10, 10], [1, 1], [1, 1])
    with pytest.raises(InvalidInputError, match=r"baseline must have shape \(\), as treatment, got \(2,\)"):
        lift_confidence_sequence(one, two)
    with pytest.raises(InvalidInputError, match="baseline must have max_reward 1, as treatment, got 4"):
        lift_confidence_sequence(one, RewardSums(10, 1, 1, 4))
    with pytest.raises(InvalidInputError, match="level must be a number"):
        mean_confidence_sequence(one, level=1)
    with pytest.raises(InvalidInputError, match="treatment_share must be a number"):
        lift_confidence_sequence(one, one, treatment_share=0)
    with pytest.raises(
        InvalidInputError, match=r"shares must be one for each of 1 periods, got \[0.1, 0.2\]"
    ):
        RewardSums.merge_periods([one], [0.1, 0.2])
    with pytest.raises(InvalidInputError, match="shares must be a number"):
        RewardSums.merge_periods([one], [0])


def test_bets_reach_from_large_to_none() -> None:
    assert _BETS[0] == 2
    assert _BETS[-1] == 0
