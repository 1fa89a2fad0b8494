"""Uncertainty of values and rankings: intervals cover, and probabilities are calibrated."""

import itertools

import numpy as np
import pytest

from banditrank import Counts, Problem, kdd2012, user_type_values
from banditrank.dashboard._alternatives import enumerate_rankings, find_runner_up, ranking_values
from banditrank.dashboard._posterior_samples import PosteriorSamples, quantile_interval
from banditrank.dashboard._probability_best import (
    equivalent_values,
    find_sampled_optimum,
    wilson_interval,
)
from banditrank.model._values import best_personalized_rankings
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.utilities._utility import MAXIMIN, NASH, UTILITARIAN, Utility, alpha_fair, ramp, sigmoid

N_PROBLEMS = 200
ROUNDS = 3000


def random_problem(rng: np.random.Generator, n: int = 1, m: int = 4, k: int = 2) -> Problem:
    rho = rng.dirichlet(np.full(k, 3.0), n)
    return Problem(rng.dirichlet(np.full(n, 5.0)), rho / rho.sum(axis=1, keepdims=True), rng.random((n, m)))


def sample_counts(problem: Problem, rng: np.random.Generator, rounds: int) -> Counts:
    """Return the counts of random rankings shown to users who look at one position."""
    counts = Counts.empty_for(problem)
    for i, number in enumerate(rng.multinomial(rounds, problem.arrival_rates)):
        for _ in range(number):
            ranking = rng.permutation(problem.n_items)[: problem.n_positions]
            looks = rng.choice(problem.n_positions, p=problem.position_preferences[i])
            rewards = np.zeros(problem.n_positions)
            rewards[looks] = rng.random() < problem.item_means[i, ranking[looks]]
            counts.record(i, ranking, rewards=rewards)
    return counts


def test_intervals_cover_and_probabilities_are_calibrated() -> None:
    """95% intervals cover the values of 200 problems, and rankings are best as often as predicted.

    More than 24 misses have a probability of 5e-5. The sum of the predicted probabilities differs from the
    number of rankings that are best by more than 4 standard deviations with a probability below 1e-4, and so
    does the mean of the predicted losses from that of the actual ones.
    """
    rng = np.random.default_rng(7)
    misses, n_predicted, n_best, variance = 0, 0.0, 0, 0.0
    excess_losses = []
    for _ in range(N_PROBLEMS):
        problem = random_problem(rng)
        samples = PosteriorSamples(sample_counts(problem, rng, 300), seed=1).of_user_type(0)
        rankings = enumerate_rankings(problem.n_items, problem.n_positions)
        means = np.array([samples.values(ranking).mean() for ranking in rankings])
        chosen = rankings[means.argmax()]
        value = user_type_values(problem, chosen)[0]
        low, high = quantile_interval(samples.values(chosen), 0.95, including=means.max())
        misses += not low <= value <= high
        probability = float((samples.values(chosen) >= samples.optimal_values() - 1e-12).mean())
        n_predicted, variance = n_predicted + probability, variance + probability * (1 - probability)
        best = best_personalized_rankings(problem)[0]
        n_best += bool((chosen == best).all())
        loss = user_type_values(problem, best)[0] - value
        excess_losses.append(float((samples.optimal_values() - samples.values(chosen)).mean()) - loss)
    assert misses <= 24
    assert abs(np.mean(excess_losses)) <= 4 * np.std(excess_losses) / np.sqrt(N_PROBLEMS)
    assert abs(n_predicted - n_best) <= 4 * np.sqrt(variance)


@pytest.mark.parametrize("utility", [UTILITARIAN, NASH, MAXIMIN, alpha_fair(2.0)], ids=str)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 5, 2), (3, 5, 2), (2, 12, 3), (1, 12, 3)])
def test_the_runner_up_is_the_best_of_all_others(n: int, m: int, k: int, utility: object) -> None:
    problem = random_problem(np.random.default_rng([n, m, k]), n, m, k)
    every = np.array(list(itertools.permutations(range(m), k)), dtype=np.intp)
    totals = utility.collectives(problem.arrival_rates, ranking_values(problem, every))
    best, second = every[np.argsort(-totals, kind="stable")[:2]]
    found = find_runner_up(problem, best, utility)
    value = utility.collectives(problem.arrival_rates, ranking_values(problem, found[None]))[0]
    if len(every) <= 1000 or n == 1:
        assert value == pytest.approx(np.sort(totals)[-2], abs=1e-12)
    else:  # the best of those that are one step away
        assert value <= totals.max()
    assert len(second) == k
    assert (found != best).any()


def test_there_may_be_no_other_ranking() -> None:
    assert find_runner_up(Problem([1], [[1]], [[0.5]]), np.array([0]), UTILITARIAN) is None


def test_the_runner_up_of_worthless_rankings_is_another_ranking() -> None:
    worthless = SampledProblem(np.full(2, 0.5), np.full((2, 3), 1 / 3), np.zeros((2, 30)))
    found = find_runner_up(worthless, np.array([0, 1, 2]), NASH)
    assert sorted(set(found.tolist())) == sorted(found.tolist()) != [0, 1, 2]


def test_enumerating_and_solving_agree_on_the_probability_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = kdd2012()
    counts = sample_counts(problem, np.random.default_rng(3), ROUNDS)
    samples = PosteriorSamples(counts, seed=5)
    for ranking in ([2, 3], [3, 2]):
        enumerated = find_sampled_optimum(samples, np.array(ranking), NASH)
        with monkeypatch.context() as patched:
            patched.setattr("banditrank.dashboard._probability_best.enumerate_rankings", lambda *_: None)
            patched.setattr("banditrank.dashboard._probability_best._SOLVER_TIMEOUT_SECONDS", 600.0)
            solved = find_sampled_optimum(samples, np.array(ranking), NASH)
        assert solved.is_optimal.mean() == pytest.approx(enumerated.is_optimal.mean(), abs=0.01)
        assert solved.losses.mean() == pytest.approx(enumerated.losses.mean(), abs=1e-4)
        assert not enumerated.losses[enumerated.is_optimal].any()
        assert enumerated.losses.min() >= 0
        assert np.isclose(solved.values, enumerated.values, rtol=1e-3).all(axis=1).mean() > 0.99


VALUES = np.array([[0.2, 0.8], [0.5, 0.5], [0.0, 0.6]])


@pytest.mark.parametrize(
    ("utility", "expected"),
    [
        (UTILITARIAN, [0.35, 0.5, 0.15]),
        (NASH, [0.2**0.75 * 0.8**0.25, 0.5, 0.0]),
        (alpha_fair(2.0), [1 / (0.75 / 0.2 + 0.25 / 0.8), 0.5, 0.0]),
        (MAXIMIN, [0.2, 0.5, 0.0]),
    ],
    ids=str,
)
def test_equivalent_values_are_means_of_the_utility(utility: Utility, expected: list[float]) -> None:
    found = equivalent_values(utility, np.tile([0.75, 0.25], (3, 1)), VALUES)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("utility", [sigmoid(20, 0.3), ramp(0.1, 0.6)], ids=str)
def test_equivalent_values_have_the_same_utility(utility: Utility) -> None:
    weights = np.tile([0.75, 0.25], (3, 1))
    found = equivalent_values(utility, weights, VALUES)
    assert utility.evaluate(found) == pytest.approx(utility.collectives(weights, VALUES))


def test_wilson_intervals_narrow_with_the_number_of_samples() -> None:
    every, most = np.ones(400, dtype=bool), np.arange(400) > 0
    # Wilson, by hand: n / (n + z²) for all of n
    assert wilson_interval(every, 0.95) == pytest.approx((1.0, 400 / (400 + 1.959964**2), 1.0))
    assert wilson_interval(every[:50], 0.95).low == pytest.approx(50 / (50 + 1.959964**2))
    assert wilson_interval(most, 0.95).low < wilson_interval(every, 0.95).low < 1.0
    assert wilson_interval(~every, 0.95)[:2] == (0.0, 0.0)


def test_samples_of_a_user_type_are_drawn_once() -> None:
    samples = PosteriorSamples(sample_counts(kdd2012(), np.random.default_rng(3), 100), seed=5)
    assert samples.of_user_type(1) is samples.of_user_type(1)


def test_the_optimum_is_unknown_if_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(np.random.default_rng(1), 2, 12, 4)
    samples = PosteriorSamples(sample_counts(problem, np.random.default_rng(1), 50), seed=5)
    monkeypatch.setattr("banditrank.dashboard._probability_best._SOLVER_TIMEOUT_SECONDS", 0.0)
    assert find_sampled_optimum(samples, np.arange(4), NASH) is None
    monkeypatch.setattr("banditrank.dashboard._probability_best.MAX_ELEMENTS", 100)
    assert find_sampled_optimum(samples, np.arange(4), NASH) is None


def test_samples_depend_on_counts_and_seed_alone() -> None:
    counts = sample_counts(kdd2012(), np.random.default_rng(3), 100)
    one, two = (PosteriorSamples(counts, seed=9) for _ in range(2))
    assert one.arrival_rates.tolist() == two.arrival_rates.tolist()
    assert one.of_user_type(1).item_means.tolist() == two.of_user_type(1).item_means.tolist()
