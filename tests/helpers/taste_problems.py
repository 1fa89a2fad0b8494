"""Problems whose user types have tastes that are alike, and a type that joins late."""

import numpy as np

from banditrank import Counts, Problem, ThompsonRank, simulate
from banditrank.model._click_models import SINGLE_LOOK, compile_problem


def correlated_problem(
    n_user_types: int,
    n_items: int = 20,
    n_positions: int = 4,
    *,
    deviation: float,
    clicks: float = 1.0,
    seed: int = 0,
) -> Problem:
    """Return a problem whose item means differ between types by normal log-odds.

    Parameters
    ----------
    n_user_types, n_items, n_positions
        N, M and K.
    deviation
        Standard deviation of the log-odds; 0 for types with the same tastes.
    clicks
        Factor of all means.
    seed
        Seed of the generator.
    """
    rng = np.random.default_rng(seed)
    common = rng.uniform(0.05, 0.95, n_items)
    tastes = deviation * rng.standard_normal((n_user_types, n_items))
    means = clicks / (1.0 + (1.0 / common - 1.0) * np.exp(-tastes))
    preferences = rng.dirichlet(np.ones(n_positions), n_user_types)
    return Problem(rng.dirichlet(np.full(n_user_types, 5.0)), preferences, means)


def joining_regret(policy: ThompsonRank, problem: Problem, *, rounds: int, visits: int, seed: int) -> float:
    """Return the regret of the last type over its first visits, after rounds of the other types alone."""
    rates = problem.arrival_rates[:-1] / problem.arrival_rates[:-1].sum()
    others = Problem(rates, problem.position_preferences[:-1], problem.item_means[:-1])
    before = simulate(policy, others, rounds, 1, seed=seed, workers=1, keep_counts=True).counts
    counts = Counts.empty_for(problem)
    counts.displays_by_position[:-1] = before[0].displays_by_position
    counts.rewards_by_position[:-1] = before[0].rewards_by_position
    counts.arrivals[:-1] = before[0].arrivals
    counts.rounds = before[0].rounds
    return visit_regret(policy, problem, counts, visits=visits, seed=seed)


def visit_regret(policy: ThompsonRank, problem: Problem, counts: Counts, *, visits: int, seed: int) -> float:
    """Return the regret of visits of the last type alone, from given counts on."""
    user_type, rng = problem.n_user_types - 1, np.random.default_rng(seed)
    compiled, rewards = compile_problem(problem), np.zeros(problem.n_positions)
    kernel = policy.bind(counts.copy(), np.random.default_rng(seed + 1))
    parameters = policy.parameters(np.array([1]))[0]
    means, preferences = problem.item_means[-1], problem.position_preferences[-1]
    best = float(np.sort(means)[::-1][: preferences.size] @ np.sort(preferences)[::-1])
    total = 0.0
    for t in range(1, visits + 1):
        ranking = kernel.rank(user_type, t, parameters)
        total += best - float(means[ranking] @ preferences)
        SINGLE_LOOK.draw(compiled, user_type, ranking, rng, rewards)
        kernel.observe(user_type, t, ranking, rewards)
    return total
