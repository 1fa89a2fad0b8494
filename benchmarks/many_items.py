"""Cost of ThompsonRank with thousands of items, as a user type gets more rounds.

Times are processor times of one thread, of one call at a time.
"""

import statistics
import time
from collections.abc import Iterator

import numpy as np
from interleaving import ROUNDS

from banditrank import Counts, ThompsonRank
from banditrank.policies._bound_kernel import BoundKernel

SIZES = ((1_000, 20), (10_000, 20))  # items, positions
STAGES = (20, 100, 400, 1_000, 3_000)  # rounds at which rankings are timed


def measure_many_items() -> Iterator[dict[str, float]]:
    """Time rankings of one user type whose items are clicked in about 1% of looks."""
    for n_items, n_positions in SIZES:
        yield from _measure(n_items, n_positions)


def _measure(n_items: int, n_positions: int) -> Iterator[dict[str, float]]:
    rng = np.random.default_rng(0)
    means = np.minimum(0.01 * np.exp(0.6 * rng.standard_normal(n_items)), 0.2)
    preferences = rng.dirichlet(np.full(n_positions, 2.0))
    policy = ThompsonRank()
    parameters = policy.parameters(np.ones(1, dtype=np.int64))[0]
    empty = Counts.empty(n_user_types=1, n_items=n_items, n_positions=n_positions)
    kernel = policy.bind(empty, np.random.default_rng(1))
    kernel.rank(0, 1, parameters)  # compiles
    spent, size = 0.0, f"{n_items:,} items, {n_positions} positions"
    for t in range(1, STAGES[-1] + 1):
        start = time.thread_time()
        ranking = kernel.rank(0, t, parameters)
        spent += time.thread_time() - start
        look, rewards = rng.choice(n_positions, p=preferences), np.zeros(n_positions)
        rewards[look] = rng.random() < means[ranking[look]]
        kernel.observe(0, t, ranking, rewards)
        if t in STAGES:
            kernel.rank(0, t, parameters)  # refits
            yield {
                f"{size}, round {t:,}: µs a ranking": statistics.median(
                    _microseconds(kernel, t, parameters) for _ in range(ROUNDS)
                ),
                f"{size}, rounds 1 to {t:,}: µs a ranking, with refits": 1e6 * spent / t,
            }


def _microseconds(kernel: BoundKernel, t: int, parameters: np.ndarray) -> float:
    calls = 20
    start = time.thread_time()
    for _ in range(calls):
        kernel.rank(0, t, parameters)
    return 1e6 * (time.thread_time() - start) / calls
