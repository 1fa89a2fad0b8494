"""Speed of the lottery solver, alone and in a compiled loop.

Everything is solved once at a small size before it is timed: compilation does not count.
"""

import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank import MAXIMIN, NASH, LeastExposure, Utility, make_problem, solve_lottery
from banditrank._compilation import compiled
from banditrank.solvers._instance import Instance, as_instance
from banditrank.solvers._lottery.column_generation import (
    LotteryHandle,
    bind_lottery,
    improve_lottery,
)

SEEDS = 9
REPEATS = 5
TARGET_GAP = 1e-9
LOOP_GAP = 1e-3
SKIPPED, ROUNDS = 1_000, 20_000


class LotteryRow(NamedTuple):
    """What is solved, and how fast it should be."""

    utility: Utility
    family: str
    size: tuple[int, int, int]  # N, M, K
    n_guarantees: int
    bar: float  # milliseconds


ROWS = tuple(
    LotteryRow(utility, family, size, n_guarantees, bar * (5 if n_guarantees else 1))
    for n_guarantees in (0, 50)
    for utility, size, bar in (
        (NASH, (10, 200, 20), 5.0),
        (NASH, (20, 1000, 20), 50.0),
        (MAXIMIN, (10, 200, 20), 20.0),
    )
    for family in ("random", "conflict")
)


def measure_lotteries() -> Iterator[dict[str, float]]:
    """Yield the figures of each row: the median over seeds of processor time, with range."""
    for row in ROWS:
        guarantees = [LeastExposure(0.5 / 50, items=range(row.n_guarantees))] if row.n_guarantees else []
        times, certified = [], 0
        for seed in range(-1, SEEDS):  # the first one compiles
            n, m, k = row.size
            problem = make_problem(row.family, n_user_types=n, n_items=m, n_positions=k, seed=max(seed, 0))
            spent = []
            for _ in range(REPEATS):
                start = time.process_time()
                lottery = solve_lottery(problem, row.utility, guarantees=guarantees, target_gap=TARGET_GAP)
                spent.append(1e3 * (time.process_time() - start))
            if seed >= 0:
                times.append(statistics.median(spent))
                certified += lottery.is_certified
        kept = f", {row.n_guarantees} least exposures" if row.n_guarantees else ""
        name = f"lottery, {row.utility}, {row.family} {'×'.join(map(str, row.size))}{kept}"
        remark = "" if certified == SEEDS else f", {certified} of {SEEDS} certified"
        spread = f"{min(times):.3g} to {max(times):.3g}"
        yield {f"{name}{remark}, {spread}, milliseconds (under {row.bar:g})": statistics.median(times)}


@compiled
def _play(
    handle: LotteryHandle,
    instance: Instance,
    means: NDArray[np.float64],
    rng: np.random.Generator,
    first: int,
    rounds: int,
) -> None:
    """Solve in each round, with means whose error falls as 1/√t."""
    for t in range(first, first + rounds):
        for i in range(means.shape[0]):
            for j in range(means.shape[1]):
                error = 0.3 * rng.standard_normal() / np.sqrt(t)
                instance.means[i, j] = min(1.0, max(0.0, means[i, j] + error))
        improve_lottery(handle, instance, LOOP_GAP, 200)


def measure_lottery_loops() -> Iterator[dict[str, float]]:
    """Yield the time of a round at (3, 20, 4) after the first 1,000, warm-started."""
    for utility in (NASH, MAXIMIN):
        for family in ("random", "conflict"):
            problem = make_problem(family, n_user_types=3, n_items=20, n_positions=4, seed=1)
            instance = as_instance(problem)
            handle = bind_lottery(3, 20, 4, utility.compiled(), capacity=24)
            rng, means = np.random.default_rng(0), problem.item_means.copy()
            _play(handle, instance, means, rng, 1, SKIPPED)
            times = []
            for _ in range(3):
                start = time.process_time()
                _play(handle, instance, means, rng, SKIPPED, ROUNDS)
                times.append(1e6 * (time.process_time() - start) / ROUNDS)
            name = f"lottery in the loop, {utility}, {family} 3×20×4, all means change in each round"
            yield {f"{name}, microseconds a round (under 20)": statistics.median(times)}
