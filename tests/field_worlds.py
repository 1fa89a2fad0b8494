"""What tests of the field's policies share: worlds, what policies are told of them, rounds to play."""

from typing import Any

import numpy as np

from banditrank.model.click_models import SINGLE_LOOK, make_world
from banditrank.model.problem import Problem
from banditrank.policies.base import CompiledPolicy, Treatment
from banditrank.policies.field.base import Rows
from banditrank.statistics.counts import Counts

# The synthetic experiment of Lagrée, Vernade and Cappé (2016), κ = (.9, .6, .3) scaled to the single look of
# a user here, and positions in another order than they are looked at.
EXAMINED = Problem([1.0], [[1 / 6, 1 / 2, 1 / 3]], [[0.15, 0.45, 0.05, 0.35, 0.25]])

EASY = Problem([1.0], [[0.2, 0.8]], [[0.05, 0.95, 0.5]])  # its gaps are wide: regret is soon logarithmic


def examination_of(problem: Problem, treatment: Treatment = "personalized") -> Rows:
    """Return how probably each position is looked at, for each copy of a policy."""
    rows = problem.position_preferences
    if treatment == "equal":
        rows = (problem.arrival_rates @ rows)[None, :]
    return tuple(tuple(row) for row in rows.tolist())


def play(policy: CompiledPolicy, problem: Problem, rounds: int, seed: int = 0) -> tuple[Any, Counts]:
    """Return the state of a policy that has played some rounds, and the counts that it kept."""
    rng = np.random.default_rng(seed)
    blind = not policy.distinguishes_user_types
    counts = Counts.empty_for(problem)
    if blind:
        counts = counts.pooled()
    state = policy.start(counts, policy.new_scratch())
    kernel = policy.kernel(n_items=problem.n_items, n_positions=problem.n_positions)
    world = make_world(problem)
    ranking, rewards = np.zeros(problem.n_positions, dtype=np.uintp), np.zeros(problem.n_positions)
    for t, parameters in enumerate(policy.parameters(np.arange(1, rounds + 1)), start=1):
        user_type = int(rng.choice(problem.n_user_types, p=problem.arrival_rates))
        seen = 0 if blind else user_type
        kernel.rank(state, seen, t, parameters, rng, ranking)
        SINGLE_LOOK.draw(world, user_type, ranking, rng, rewards)
        kernel.observe(state, seen, t, ranking, rewards)
    counts.rounds = rounds
    return state, counts
