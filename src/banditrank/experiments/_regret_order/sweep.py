"""Jobs: the theorems' own schedules on Table 1, and problems of doubled size."""

import numpy as np

from banditrank.experiments._job import Job
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.model._catalog import kdd2012
from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BetaRewards
from banditrank.policies import schedules
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._ucb_rank import UCBRank

HORIZON, QUICK_HORIZON = 1_000_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 40, 8
PROBLEMS, QUICK_PROBLEMS = 40, 6
SIZES_HORIZON, QUICK_SIZES_HORIZON = 200_000, 20_000
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds, and "
    f"{QUICK_PROBLEMS} of {PROBLEMS} problems of each size for {QUICK_SIZES_HORIZON:,} of "
    f"{SIZES_HORIZON:,} rounds"
)
SIZES = {"base": (2, 8, 2), "types": (4, 8, 2), "items": (2, 16, 2), "positions": (2, 8, 4)}  # N, M, K
"""Base size, and each of N, M and K doubled."""

SAME_FOR_ALL_SIZES: dict[str, CompiledPolicy] = {
    "theorem-1": GreedyRank(coefficient=1.0),
    "theorem-2": UCBRank(coefficient=1.0),
    "theorem-3": GreedyRank(coefficient=1.0, treatment="equal"),
    "theorem-4": UCBRank(coefficient=1.0, treatment="equal"),
}
"""Policies whose schedules do not depend on the size."""


def policies(problem: Problem) -> dict[str, CompiledPolicy]:
    """Return each theorem's policy with its schedule; for Theorems 1 and 4 with the schedule of the proof."""
    return {
        "theorem-1": GreedyRank(schedule=schedules.theorem_1(problem, reading="proof")),
        "theorem-2": UCBRank(schedule=schedules.theorem_2(problem)),
        "theorem-3": GreedyRank(schedule=schedules.theorem_3(problem), treatment="equal"),
        "theorem-4": UCBRank(
            schedule=schedules.theorem_4(problem, lipschitz=1.0, reading="proof"), treatment="equal"
        ),
    }


def random_problems(size: str, count: int) -> tuple[Problem, ...]:
    """Return random problems of one of the sizes."""
    n, m, k = SIZES[size]
    return tuple(
        make_problem("synthetic", n_user_types=n, n_items=m, n_positions=k, seed=seed)
        for seed in range(count)
    )


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job per theorem on Table 1, and per policy and size."""
    horizon = QUICK_HORIZON if quick else HORIZON
    checkpoints = tuple(np.unique(np.geomspace(10, horizon, 61).astype(np.int64)).tolist())
    jobs: list[Job] = [
        SimulationJob(
            name=name,
            policy=policy,
            problems=(kdd2012(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=checkpoints,
        )
        for name, policy in policies(kdd2012()).items()
    ]
    horizon = QUICK_SIZES_HORIZON if quick else SIZES_HORIZON
    for size in SIZES:
        jobs += [
            SimulationJob(
                name=f"{size}-{name}",
                policy=policy,
                problems=random_problems(size, QUICK_PROBLEMS if quick else PROBLEMS),
                horizon=horizon,
                replications=2,
                seed=seed,
                rewards=BetaRewards(),  # as in the paper's synthetic problem: the initial phase is short
                checkpoints=(horizon,),
                microseconds_per_round=0.5,
            )
            for name, policy in SAME_FOR_ALL_SIZES.items()
        ]
    return jobs
