"""ThompsonRank with position-based clicks: its posterior, and its regret beside PBM-TS with known looks."""

from collections.abc import Callable

import numpy as np
import pytest
from helpers.posteriors import fix_preferences, set_rounds

from banditrank import Counts, Policy, ThompsonRank, UnknownNameError, kdd2012, make_policy, simulate
from banditrank.engine._served_policies import served_policy
from banditrank.experiments._compare.suites import SUITES
from banditrank.model._click_models import PositionBased
from banditrank.policies._bound_posterior import bind_posterior, sample_posterior
from banditrank.policies.baselines import PBMTS
from banditrank.testing._policies import POLICY_CHECKS, MakePolicy, dense_counts

SUITE = SUITES["position-based"]
PROBLEM = SUITE.make_problem(0)
LOOKS = PositionBased().position_weights(PROBLEM)
POLICIES: dict[str, MakePolicy] = {
    "personalized": lambda _: ThompsonRank(click_model="position-based"),
    "equal": lambda _: ThompsonRank(click_model="position-based", treatment="equal", utility="nash"),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
def test_policy_conforms(make: MakePolicy, check: Callable[[MakePolicy], None]) -> None:
    check(make)


def test_preferences_are_drawn_from_their_posterior() -> None:
    # Two positions, three items, 20,000 draws: four standard errors are 2.8% of a deviation for the mean and
    # 2% for the deviation. The rest is the approximation's: tolerated are 0.2 deviations and 15%.
    displays = 4 * np.array([[30.0, 20], [10, 25], [16, 19]])
    rewards = 4 * np.array([[24.0, 9], [4, 7], [3, 2]])
    handle = bind_posterior(Counts.from_arrays([displays], [rewards], [400]), 1.0, is_position_based=True)
    rng, drawn = np.random.default_rng(2), np.zeros((20_000, 2))
    for row in drawn:
        sample_posterior(handle, 0, rng)
        row[:] = handle.preferences
    posterior = handle.posterior()
    assert (drawn.max(axis=1) == 1).all()
    shares = drawn[:, 0] / drawn.sum(axis=1)
    # The exact posterior of the share of looks: uniform prior, binomial clicks, means integrated over a grid.
    grid, means = (np.arange(400) + 0.5) / 400, (np.arange(1000) + 0.5) / 1000
    looks = np.stack([grid, 1 - grid]) / np.maximum(grid, 1 - grid)  # (2, 400)
    logs = np.zeros(grid.size)
    shape, mean = posterior.prior.shape[0], posterior.prior.levels[0]
    for j in range(3):
        table = np.tile((shape - 1) * np.log(means) - shape / mean * means, (grid.size, 1))
        for k in range(2):
            chances = looks[k][:, None] * means
            table += rewards[j, k] * np.log(chances) + (displays - rewards)[j, k] * np.log1p(-chances)
        logs += np.log(np.exp(table - table.max()).sum(axis=1)) + table.max()
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    average = weights @ grid
    deviation = np.sqrt(weights @ (grid - average) ** 2)
    assert shares.mean() == pytest.approx(average, abs=0.2 * deviation)
    assert shares.std() == pytest.approx(deviation, rel=0.15)


@pytest.mark.parametrize("looks", [(1.0, 1.0), (1.0, 0.35), (0.35, 1.0)], ids=str)
def test_means_are_drawn_from_the_upper_half_of_their_posterior(looks: tuple[float, float]) -> None:
    # Quantiles above the middle of 20,000 draws are off by 2% of a deviation; tolerated: 0.65 deviations, the
    # approximation being off by 0.6 for the first item where it was shown most at the position looked at
    # less, since the prior has less weight in it. Gamma variables would be off by 1.1 there at level 0.99.
    displays = np.array([[[200.0, 20], [60, 60], [6, 18]]])
    chances = np.array([0.9, 0.5, 0.2])[:, None] * np.array(looks)
    rewards = np.round(displays * chances)
    counts = Counts.from_arrays(displays, rewards, [400])
    handle = bind_posterior(counts, 1.0, is_position_based=True)
    set_rounds(handle, 1e12)  # so late there is no caution
    fix_preferences(handle, np.array(looks))
    posterior = handle.posterior()
    shape, mean = posterior.prior.shape[0], posterior.prior.levels[0]
    rng, drawn = np.random.default_rng(3), np.zeros((20_000, 3))
    for row in drawn:
        sample_posterior(handle, 0, rng)
        row[:] = handle.means
    assert drawn.max() <= 1
    grid = (np.arange(20_000) + 0.5) / 20_000
    for j in range(3):
        logs = (shape - 1) * np.log(grid) + (shape * (1 / mean - 1) - 1) * np.log1p(-grid)
        for k in range(2):
            missed = displays[0, j, k] - rewards[0, j, k]
            logs += rewards[0, j, k] * np.log(grid) + missed * np.log1p(-looks[k] * grid)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        average = weights @ grid
        deviation = np.sqrt(weights @ (grid - average) ** 2)
        for level in (0.75, 0.9, 0.99):
            exact = grid[np.searchsorted(np.cumsum(weights), level)]
            assert np.quantile(drawn[:, j], level) == pytest.approx(exact, abs=0.65 * deviation), (j, level)


def test_sampled_problems_are_scaled_by_the_most_looked_at_position() -> None:
    counts = dense_counts(kdd2012())
    for treatment in ("personalized", "equal"):
        policy = ThompsonRank(click_model="position-based", treatment=treatment)
        kernel = policy.bind(counts, np.random.default_rng(1))
        kernel.rank(0, 1, policy.parameters(np.array([1]))[0])
        sampled = policy.sampled_problem(kernel.state)
        assert (sampled.position_preferences.max(axis=1) == 1).all()
        assert sampled.item_means.max() <= 1


def test_beliefs_follow_from_the_counts_alone() -> None:
    problem, policy = kdd2012(), ThompsonRank(click_model="position-based")
    looks = PositionBased().position_weights(problem)
    counts = Counts.empty_for(problem)
    rng, parameters = np.random.default_rng(7), np.zeros(1)
    kernel = policy.bind(counts, rng)
    for t in range(1, 3001):
        user_type = int(rng.random() < problem.arrival_rates[1])
        ranking = kernel.rank(user_type, t, parameters)
        chances = looks[user_type] * problem.item_means[user_type, ranking]
        kernel.observe(user_type, t, ranking, (rng.random(2) < chances).astype(float))
    grown = kernel.state.posterior.posterior()
    fresh = policy.init_state(counts.copy(), None).posterior.posterior()
    # They differ by what came since beliefs were brought up to date last, at most a hundredth of the rounds.
    assert grown.preferences == pytest.approx(fresh.preferences, abs=0.02)
    assert grown.position_rewards == pytest.approx(fresh.position_rewards, rel=0.05)
    assert grown.weights == pytest.approx(fresh.weights, rel=0.05)
    # 3,000 rounds: standard errors are below 0.04.
    assert fresh.preferences == pytest.approx(looks, abs=0.16)


def test_rewards_are_taken_in_their_unit() -> None:
    counts = dense_counts(kdd2012())
    paid = Counts.from_arrays(
        counts.displays, 8.0 * counts.rewards, counts.arrivals, counts.rounds, max_reward=8
    )
    plain, scaled = (ThompsonRank(click_model="position-based", max_reward=most) for most in (1.0, 8.0))
    for seed in range(30):
        expected = plain.rank(counts, 1, rng=np.random.default_rng(seed))
        assert scaled.rank(paid, 1, rng=np.random.default_rng(seed)).tolist() == expected.tolist()


def test_policies_by_name_have_the_click_model() -> None:
    assert make_policy("auto", click_model="position-based").click_model == "position-based"
    assert make_policy("auto", click_model="cascade").click_model == "single-look"
    served = served_policy(
        "auto", treatment="equal", utility="nash", coefficient=None, click_model="position-based"
    )
    assert served.click_model == "position-based"
    assert served.describe()["click_model"] == "position-based"
    assert ThompsonRank().fingerprint() != ThompsonRank(click_model="position-based").fingerprint()
    with pytest.raises(UnknownNameError, match="click_model"):
        ThompsonRank(click_model="cascade")


def regrets(policy: Policy, horizon: int, replications: int) -> np.ndarray:
    result = simulate(
        policy, PROBLEM, horizon=horizon, replications=replications, seed=11, click_model=PositionBased()
    )
    return result.regret[:, -1]


def ratio_interval(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of the ratio of two mean regrets, by the bootstrap."""
    rng = np.random.default_rng(0)
    means = [rng.choice(values, (4000, values.size)).mean(axis=1) for values in (ours, theirs)]
    low, high = np.quantile(means[0] / means[1], [0.025, 0.975])
    return float(low), float(high)


def test_regret_is_close_to_that_of_known_looks() -> None:
    # 10,000 rounds, 12 replications, fixed seeds: the ratio of the mean regrets is 1.00, with a standard
    # error of 0.055; over 100 replications it is 1.01, and 1.13 for single looks. PBM-TS is given the looks.
    ours = regrets(ThompsonRank(click_model="position-based"), 10_000, 12)
    theirs = regrets(PBMTS(examination=LOOKS.tolist()), 10_000, 12)
    assert ours.mean() <= 1.1 * theirs.mean()


@pytest.mark.campaign
def test_regret_is_at_most_a_tenth_above_that_of_known_looks() -> None:
    # The bar: at most 1.1 times the regret of PBM-TS at 100,000 rounds. The 95% interval of the ratio over
    # 200 replications is 0.955 to 1.022: see docs/explanation/thompson-rank.md.
    ours = regrets(ThompsonRank(click_model="position-based"), SUITE.horizon, 200)
    theirs = regrets(PBMTS(examination=LOOKS.tolist()), SUITE.horizon, 200)
    assert ratio_interval(ours, theirs)[1] <= 1.1
    assert ours.max() <= 2 * theirs.max()
