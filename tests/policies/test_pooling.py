"""ThompsonRank learns from what other user types like, as far as tastes are alike."""

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import Counts, Problem, ThompsonRank, make_problem, simulate
from banditrank.errors import InvalidInputError
from banditrank.policies import _mean_prior as mean_prior
from banditrank.policies._bound_posterior import bind_posterior
from banditrank.policies._mean_prior import MAX_SUMMED_TYPES, MeanPrior, new_mean_prior

Floats = NDArray[np.float64]

POPULARITIES = np.exp(np.random.default_rng(1).normal(0.0, 0.7, 12)) * 0.15


def uniform_counts(means: Floats, displays: Floats, *, seed: int) -> Counts:
    """Return counts of items that were shown equally often at one position, displays for each type."""
    rng = np.random.default_rng(seed)
    shown = np.broadcast_to(displays[:, None], means.shape)
    rewards = rng.binomial(shown.astype(int), means).astype(float)
    return Counts.from_arrays(shown[:, :, None], rewards[:, :, None], shown.sum(axis=1))


def fitted_prior(means: Floats, displays: Floats, *, seed: int = 2, is_pooled: bool = True) -> MeanPrior:
    counts = uniform_counts(means, displays, seed=seed)
    return bind_posterior(counts, 1.0, is_pooled=is_pooled).posterior().prior


def correlated_means(deviation: float, n_user_types: int = 6) -> Floats:
    normals = np.random.default_rng(3).normal(size=(n_user_types, POPULARITIES.size))
    return np.clip(POPULARITIES * np.exp(deviation * normals - deviation**2 / 2), 0.005, 0.95)


def test_the_variance_of_tastes_is_fitted() -> None:
    # 6 types, 12 items, 4,000 displays of each: 60 deviations tell s² to 18%, a standard error (four: 73%).
    displays = np.full(6, 4000.0)
    alike, different = (
        fitted_prior(correlated_means(deviation), displays).taste_variance[0] for deviation in (0.1, 0.5)
    )
    assert alike < 0.04
    assert different == pytest.approx(np.expm1(0.5**2), rel=0.73)


def test_independent_tastes_are_not_pooled() -> None:
    means = np.exp(np.random.default_rng(4).normal(-2.0, 0.9, (6, 12))).clip(0.005, 0.95)
    prior = fitted_prior(means, np.full(6, 4000.0))
    assert prior.taste_variance[0] * prior.shape[0] > 0.6
    assert prior.shapes.max() < 1.6 * prior.shape[0]


def test_a_new_type_starts_from_what_others_like() -> None:
    displays = np.full(6, 3000.0)
    displays[0] = 0.0
    prior = fitted_prior(correlated_means(0.1), displays)
    expected = prior.shapes[0] / prior.looks[0]
    assert expected == pytest.approx(correlated_means(0.1)[1:].mean(axis=0), rel=0.2)
    assert prior.shapes[0].min() > 5.0  # as sure as five clicks make it
    alone = fitted_prior(correlated_means(0.1), displays, is_pooled=False)
    assert np.ptp(alone.shapes[0] / alone.looks[0]) == 0.0


def test_rounds_of_types_with_the_same_tastes_count() -> None:
    displays = np.array([10.0, 1000, 2000, 3000, 3000, 4000])
    rounds = displays * POPULARITIES.size
    prior = fitted_prior(correlated_means(0.1), displays)
    share = prior.shared_rounds[0] / (rounds[1:].sum() - rounds[1:].max())  # the largest does not count
    assert 0.8 < share < 1.0
    different = np.exp(np.random.default_rng(4).normal(-2.0, 0.9, (6, 12))).clip(0.005, 0.95)
    assert fitted_prior(different, displays).shared_rounds.max() < 0.4 * rounds.sum()
    assert fitted_prior(correlated_means(0.1), displays, is_pooled=False).shared_rounds.max() == 0.0
    two = fitted_prior(correlated_means(0.1, 2), displays[:2])
    assert two.shared_rounds.max() == 0.0


def test_one_type_cannot_condemn_an_item() -> None:
    # Four types were shown the item a thousand times and like it; the fifth dislikes it as surely.
    means = np.full((6, 8), 0.2)
    means[4, 0] = 0.005
    displays = np.full(6, 1000.0)
    displays[5] = 0.0
    prior = fitted_prior(means, displays)
    assert prior.shapes[5, 0] / prior.looks[5, 0] > 0.12


def test_pooling_does_not_depend_on_the_order_of_types_and_items() -> None:
    means, displays = correlated_means(0.3), np.array([0.0, 50, 200, 1000, 3000, 3000])
    counts = uniform_counts(means, displays, seed=5)
    types, items = np.random.default_rng(6).permutation(6), np.random.default_rng(7).permutation(12)
    shuffled = Counts.from_arrays(
        counts.displays[types][:, items], counts.rewards[types][:, items], counts.arrivals[types]
    )
    prior, other = (bind_posterior(each, 1.0).posterior().prior for each in (counts, shuffled))
    # Types are fitted one after the other, 20 times: what is left of their order is small.
    assert other.taste_variance == pytest.approx(prior.taste_variance, rel=0.02)
    assert other.shapes == pytest.approx(prior.shapes[types][:, items], rel=0.02)
    assert other.looks == pytest.approx(prior.looks[types][:, items], rel=0.02)


@pytest.mark.parametrize("n_clicks", [0.0, 1.0])
def test_counts_without_or_with_nothing_but_clicks_have_proper_priors(n_clicks: float) -> None:
    counts = Counts.from_arrays(
        np.full((3, 4, 2), 500.0), np.full((3, 4, 2), 250.0 * n_clicks), np.full(3, 2000.0)
    )
    prior = bind_posterior(counts, 1.0).posterior().prior
    for values in (prior.shapes, prior.looks, prior.levels, prior.taste_variance):
        assert np.isfinite(values).all()
        assert (values > 0).all()


def alike_types(n_user_types: int) -> Problem:
    rng = np.random.default_rng(8)
    base = rng.uniform(0.05, 0.6, 20)
    means = np.clip(base * np.exp(rng.normal(0.0, 0.2, (n_user_types, 20))), 0.01, 0.95)
    preferences = rng.dirichlet(np.ones(4), n_user_types)
    return Problem(np.full(n_user_types, 1 / n_user_types), preferences, means)


def test_types_that_are_alike_are_learned_together() -> None:
    # 10 types, 8 replications: the ratio of mean regrets is 0.58, with a standard error of 0.02.
    problem = alike_types(10)
    pooled, alone = (
        simulate(ThompsonRank(pooling=pooling), problem, horizon=20_000, replications=8, seed=1)
        .regret[:, -1]
        .mean()
        for pooling in (True, False)
    )
    assert pooled < 0.75 * alone


def test_a_long_tail_of_items_is_not_taken_for_different_tastes() -> None:
    # Six types, 200 items. Without the bound, s² is at 1/a for all of the rounds, and regret is 2.5 times as
    # large: 2,108 with a standard error of 40, against 835 and 60.
    problem = make_problem("long-tail", n_user_types=6, n_items=200, n_positions=12, seed=0)
    settings = {"horizon": 40_000, "replications": 4, "seed": 3, "click_model": "cascade"}
    result = simulate(ThompsonRank(), problem, keep_counts=True, workers=1, **settings)
    assert result.mean[-1] < 1_200
    prior = bind_posterior(result.counts[0], 1.0).posterior().prior
    assert prior.taste_variance[0] * prior.shape[0] < 0.7
    assert prior.shared_rounds.min() > 0.3 * (40_000 / 6) * 4


def test_the_bound_of_different_tastes_rules_out_what_is_unlikely() -> None:
    # As in the test of the fit: with four standard errors, s² of 0.28 is below 0.5 and above 0.08.
    displays = np.full(6, 4000.0)
    bounds = [
        fitted_prior(correlated_means(deviation), displays).taste_variance_bound[0]
        for deviation in (0.1, 0.5)
    ]
    assert 0.01 <= bounds[0] < 0.08
    assert 0.28 < bounds[1] < 0.9
    independent = np.exp(np.random.default_rng(4).normal(-2.0, 0.9, (6, 12))).clip(0.005, 0.95)
    assert fitted_prior(independent, displays).taste_variance_bound[0] == np.inf
    assert fitted_prior(independent, np.zeros(6)).taste_variance_bound[0] == np.inf


@pytest.mark.parametrize("n_user_types", [2, MAX_SUMMED_TYPES + 2])
@pytest.mark.parametrize("other", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("displays", [1e3, 1e4, 1e8])
def test_levels_of_types_that_like_different_items_do_not_diverge(
    n_user_types: int, other: float, displays: float
) -> None:
    # Without a largest level, two types have levels of up to 10^142 here, and NaN after ten times the rounds.
    means = np.full((n_user_types, 10), other)
    means[::2, :5] = means[1::2, 5:] = 0.9
    prior = fitted_prior(means, np.full(n_user_types, displays))
    assert 0.1 < prior.levels.min() <= prior.levels.max() <= 10.0
    assert prior.taste_variance[0] * prior.shape[0] > 0.25
    posterior_means = (prior.shapes + prior.rewards) / (prior.looks + prior.exposures)
    assert np.abs(posterior_means - prior.rewards / prior.exposures).max() < 0.01


def test_many_types_are_bounded_as_few_are() -> None:
    means = correlated_means(0.2, 70)
    few, many = (
        fitted_prior(means[:n], np.full(n, 2000.0)).taste_variance_bound[0]
        for n in (MAX_SUMMED_TYPES, MAX_SUMMED_TYPES + 6)
    )
    assert many == pytest.approx(few, rel=0.3)


def test_a_type_with_few_clicks_for_each_item_saves_exploration() -> None:
    # Factors of 1: few items, or 54 clicks for each. 0.4: each item has a click in 800 visits or more.
    cases = ((5, 10, 0, 1.0), (20, 1000, 500, 1.0), (862, 5000, 2000, 0.4), (200, 10_000, 100, 0.4))
    for n_items, visits, clicks, factor in cases:
        displays = np.full((1, n_items, 1), visits / n_items)
        rewards = np.full((1, n_items, 1), clicks / n_items)
        counts = Counts.from_arrays(displays, rewards, [visits])
        assert bind_posterior(counts, 1.0).posterior().variance_factors[0] == pytest.approx(factor, abs=0.02)
    counts = Counts.from_arrays(displays * 1000, rewards * 1000, [visits * 1000])
    assert bind_posterior(counts, 1.0).posterior().variance_factors[0] == 1.0
    assert bind_posterior(counts, 1.0, horizon=10**9).posterior().variance_factors[0] == 1.0
    assert bind_posterior(counts, 1.0, horizon=2_000).posterior().variance_factors[0] < 0.3


def test_a_horizon_of_few_visits_saves_exploration() -> None:
    # 200 visits for each of 20 items: the factor on variances is 0.53. The ratio of mean regrets is 0.81,
    # with a standard error of 0.08.
    rng = np.random.default_rng(9)
    problem = Problem(np.full(4, 0.25), rng.dirichlet(np.ones(4), 4), rng.uniform(0.05, 0.95, (4, 20)))
    short, unknown = (
        simulate(ThompsonRank(horizon=horizon), problem, horizon=16_000, replications=8, seed=2)
        .regret[:, -1]
        .mean()
        for horizon in (4_000, None)
    )
    assert short < unknown


def test_a_long_horizon_changes_nothing() -> None:
    problem = alike_types(2)
    runs = [
        simulate(ThompsonRank(horizon=horizon), problem, horizon=500, replications=1, seed=3).regret
        for horizon in (10**7, None)
    ]
    assert np.array_equal(*runs)


def test_a_prior_of_positions_is_used_until_counts_tell_better() -> None:
    prior = (300.0, 100.0)
    empty, full = (
        Counts.from_arrays(
            scale * np.full((1, 3, 2), 1000.0), scale * np.full((1, 3, 2), (200.0, 300.0)), [3000 * scale]
        )
        for scale in (0.0, 10.0)
    )
    started = bind_posterior(empty, 1.0, position_prior=prior).posterior().preferences[0]
    assert started == pytest.approx([0.75, 0.25], abs=0.01)
    learned = bind_posterior(full, 1.0, position_prior=prior).posterior().preferences[0]
    assert learned == pytest.approx([0.4, 0.6], abs=0.02)


@pytest.mark.parametrize("click_model", ["single-look", "position-based"])
def test_samples_keep_a_known_order_of_positions(click_model: str) -> None:
    policy = ThompsonRank(position_order=(2, 0, 1), click_model=click_model)
    counts = Counts.from_arrays(np.full((1, 4, 3), 9.0), np.full((1, 4, 3), 3.0), [36])
    rng = np.random.default_rng(4)
    kernel = policy.bind(counts, rng)
    for _ in range(50):
        kernel.rank(0, 1, policy.parameters(np.array([1]))[0])
        sampled = policy.sampled_problem(kernel.state)
        assert sampled is not None
        first, second, third = sampled.position_preferences[0, [2, 0, 1]]
        assert first >= second >= third


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": 1}, "pooling must be true or false, got 1"),
        ({"horizon": 0}, "horizon must be"),
        ({"position_prior": (1.0, -1.0)}, "position_prior must be a number from 0"),
        ({"position_order": (0, 2)}, r"position_order must hold every position once, from 0, got \(0, 2\)"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ThompsonRank(**options)


@pytest.mark.parametrize("options", [{"position_prior": (1.0,)}, {"position_order": (0, 1, 2)}], ids=str)
def test_options_must_fit_the_positions(options: dict) -> None:
    with pytest.raises(InvalidInputError, match="must have 2 values, one for each position"):
        ThompsonRank(**options).start(n_items=3, n_positions=2)


class CountedArray:
    """An array that counts how many of its elements are read."""

    def __init__(self, values: NDArray[np.generic]) -> None:
        self.values = values
        self.shape, self.size = values.shape, values.size
        self.n_reads = 0

    def __getitem__(self, index: int | tuple[int, ...]) -> object:
        self.n_reads += 1
        return self.values[index]

    def __setitem__(self, index: int | tuple[int, ...], value: object) -> None:
        self.values[index] = value


def reads_of_a_fit(n_user_types: int, n_items: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many elements the fit of one type's prior reads, counted in Python."""
    for name, function in vars(mean_prior).items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(mean_prior, name, function.py_func)
    prior = new_mean_prior(n_user_types, n_items, is_pooled=True)
    arrays = [CountedArray(each) if isinstance(each, np.ndarray) else each for each in prior]
    rows = np.ones(n_items), np.ones(n_items)
    mean_prior.fit_prior(MeanPrior(*arrays), 0, *rows, np.ones(n_user_types), is_bounded=True)
    return sum(each.n_reads for each in arrays if isinstance(each, CountedArray))


def test_the_work_of_a_fit_does_not_grow_with_types_times_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 16: among many types, the fit of one reads the others' levels but none of their items."""
    many = MAX_SUMMED_TYPES + 1
    for n_items in (4, 40):
        more, fewer = (reads_of_a_fit(n, n_items, monkeypatch) for n in (many + 100, many))
        assert more - fewer <= 10 * 100
    few = reads_of_a_fit(many - 1, 40, monkeypatch)
    assert few > 2 * 40 * (many - 2)  # each item of each other type
    assert fewer < few / 10


@pytest.mark.parametrize("deviation", [0.1, 0.4, 1.5])
def test_shared_sums_tell_many_types_what_each_sum_would(
    monkeypatch: pytest.MonkeyPatch, deviation: float
) -> None:
    """Finding 16: the posterior means of many types agree with those of summing over all others."""
    n_user_types = MAX_SUMMED_TYPES + 16
    displays = np.random.default_rng(5).integers(0, 400, n_user_types).astype(float)
    means = correlated_means(deviation, n_user_types)
    added = fitted_prior(means, displays)
    monkeypatch.setattr(mean_prior, "MAX_SUMMED_TYPES", n_user_types)
    summed = fitted_prior(means, displays)
    assert added.weighted_rewards.size > 0
    assert summed.weighted_rewards.size == 0
    assert added.taste_variance == pytest.approx(summed.taste_variance, rel=0.05)
    for mine, exact in ((added.popularities, summed.popularities), (added.shapes, summed.shapes)):
        assert mine == pytest.approx(exact, rel=0.1)
    posterior_means = [
        (each.shapes + each.rewards) / (each.looks + each.exposures) for each in (added, summed)
    ]
    assert posterior_means[0] == pytest.approx(posterior_means[1], rel=0.02)


def test_the_order_of_many_types_hardly_matters() -> None:
    """Finding 16: shared sums, to which types are added one after the other, are those of all types."""
    n_user_types = MAX_SUMMED_TYPES + 16
    displays = np.random.default_rng(5).integers(0, 400, n_user_types).astype(float)
    prior = fitted_prior(correlated_means(0.4, n_user_types), displays)
    assert prior.total_rewards == pytest.approx(prior.weighted_rewards.sum(axis=0))
    assert prior.total_looks == pytest.approx(prior.weighted_looks.sum(axis=0))
