"""What is run: the theorems' own schedules on Table 1's world, and worlds of doubled size."""

import numpy as np

from banditrank.experiments.part import Part
from banditrank.experiments.simulation_part import SimulationPart
from banditrank.model.catalog import kdd2012
from banditrank.model.generators import make_problem
from banditrank.model.problem import Problem
from banditrank.model.rewards import BetaRewards
from banditrank.policies import schedules
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.ucb_rank import UCBRank

HORIZON, QUICK_HORIZON = 1_000_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 40, 8
WORLDS, QUICK_WORLDS = 40, 6
SIZES_HORIZON, QUICK_SIZES_HORIZON = 200_000, 20_000
CUT = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds, and "
    f"{QUICK_WORLDS} of {WORLDS} worlds of each size for {QUICK_SIZES_HORIZON:,} of {SIZES_HORIZON:,} rounds"
)
SIZES = {"base": (2, 8, 2), "types": (4, 8, 2), "items": (2, 16, 2), "positions": (2, 8, 4)}  # N, M, K
"""One number doubled at a time."""

SAME_FOR_ALL_SIZES: dict[str, CompiledPolicy] = {
    "theorem-1": GreedyRank(coefficient=1.0),
    "theorem-2": UCBRank(coefficient=1.0),
    "theorem-3": GreedyRank(coefficient=1.0, treatment="equal"),
    "theorem-4": UCBRank(coefficient=1.0, treatment="equal"),
}
"""With schedules that do not change with the size themselves."""


def policies(problem: Problem) -> dict[str, CompiledPolicy]:
    """Return each theorem's policy with the theorem's schedule; for Theorems 1 and 4 that of its proof."""
    return {
        "theorem-1": GreedyRank(schedule=schedules.theorem_1(problem, reading="proof")),
        "theorem-2": UCBRank(schedule=schedules.theorem_2(problem)),
        "theorem-3": GreedyRank(schedule=schedules.theorem_3(problem), treatment="equal"),
        "theorem-4": UCBRank(
            schedule=schedules.theorem_4(problem, lipschitz=1.0, reading="proof"), treatment="equal"
        ),
    }


def worlds(size: str, count: int) -> tuple[Problem, ...]:
    """Return random worlds of one of the sizes."""
    n, m, k = SIZES[size]
    return tuple(
        make_problem("synthetic", n_user_types=n, n_items=m, n_positions=k, seed=number)
        for number in range(count)
    )


def sweep(seed: int, *, quick: bool) -> list[Part]:
    """Return the parts: each theorem on Table 1's world, and the paper's policies on each size."""
    horizon = QUICK_HORIZON if quick else HORIZON
    checkpoints = tuple(np.unique(np.geomspace(10, horizon, 61).astype(np.int64)).tolist())
    parts: list[Part] = [
        SimulationPart(
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
        parts += [
            SimulationPart(
                name=f"{size}-{name}",
                policy=policy,
                problems=worlds(size, QUICK_WORLDS if quick else WORLDS),
                horizon=horizon,
                replications=2,
                seed=seed,
                rewards=BetaRewards(),  # as in the paper's synthetic world: the initial phase is short
                checkpoints=(horizon,),
                microseconds=0.5,
            )
            for name, policy in SAME_FOR_ALL_SIZES.items()
        ]
    return parts
