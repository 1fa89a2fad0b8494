"""Cost of candidates: rankings of 100 of 200 items against rankings of all, one call at a time.

Times are processor times of one thread: a call takes microseconds and waits for nothing, so other processes
would only add noise.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from interleaving import interleave, ratio
from problems import easy_problem

from banditrank import GreedyRank, Learner, Policy, Smoothing, ThompsonRank, UCBRank
from banditrank.testing._policies import dense_counts

CALLS = 2_000
PROBLEM = easy_problem(3, 200, 10)
CANDIDATES = np.random.default_rng(0).permutation(200)[:100]
PERSONALIZED: dict[str, Policy] = {
    "ThompsonRank": ThompsonRank(),
    "UCBRank": UCBRank(),
    "UCBRank with pseudo-counts": UCBRank(smoothing=Smoothing()),
    "GreedyRank": GreedyRank(),
}


def measure_candidates() -> Iterator[dict[str, float]]:
    """Compare `Learner.rank` with candidates, and with candidates and a pin, with a plain call."""
    for name, policy in PERSONALIZED.items():
        learner = policy.start(counts=dense_counts(PROBLEM), rng=1)
        times = interleave(
            {
                "plain": _seconds(learner),
                "candidates": _seconds(learner, candidates=CANDIDATES),
                "pinned": _seconds(learner, candidates=CANDIDATES, pinned={2: 7}),
            }
        )
        yield {
            f"{name}, 100 of 200 candidates over all items (at most 1.3)": ratio(
                times["candidates"], times["plain"]
            ),
            f"{name}, 100 of 200 candidates and a pin over all items": ratio(times["pinned"], times["plain"]),
        }


def _seconds(learner: Learner, **restriction: object) -> Callable[[], float]:
    learner.rank(0, **restriction)  # compiles

    def measure() -> float:
        start = time.thread_time()
        for call in range(CALLS):
            learner.rank(call % 3, **restriction)
        return time.thread_time() - start

    return measure
