"""What is run: the paper's policies and its baseline, with the coefficients of its section 5.1."""

from banditrank.experiments.simulation_part import SimulationPart, checkpoints_with
from banditrank.model.generators import make_problem
from banditrank.model.problem import Problem
from banditrank.model.rewards import BetaRewards
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.type_blind import TypeBlindUCB
from banditrank.policies.ucb_rank import UCBRank

WORLD_SEED = 0
REWARDS = BetaRewards()
HORIZON, QUICK_HORIZON = 300_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 20, 4
OTHER_WORLDS, QUICK_OTHER_WORLDS = 20, 4
WORLDS_HORIZON, QUICK_WORLDS_HORIZON = 200_000, 20_000
CUT = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds, and "
    f"{QUICK_OTHER_WORLDS} of {OTHER_WORLDS} other worlds for {QUICK_WORLDS_HORIZON:,} of "
    f"{WORLDS_HORIZON:,} rounds"
)

PERSONALIZED: dict[str, CompiledPolicy] = {
    "greedy-personalized": GreedyRank(coefficient=1.0),
    "ucb-personalized": UCBRank(coefficient=1.0),
    "baseline": TypeBlindUCB(coefficient=1.0),
}
EQUAL: dict[str, CompiledPolicy] = {
    f"{name}-{utility}": policy(coefficient=5.0, treatment="equal", utility=utility)
    for utility in ("utilitarian", "nash")
    for name, policy in (("greedy", GreedyRank), ("ucb", UCBRank))
}
MICROSECONDS = {"greedy-nash": 1.5, "ucb-nash": 4.0, "ucb-utilitarian": 1.0}


def world(seed: int = WORLD_SEED) -> Problem:
    """Return a world of the paper's size."""
    return make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=seed)


def sweep(seed: int, *, quick: bool) -> list[SimulationPart]:
    """Return the parts: each policy on one world many times, and equal ones on other worlds once each."""
    horizon = QUICK_HORIZON if quick else HORIZON
    parts = [
        SimulationPart(
            name=name,
            policy=policy,
            problems=(world(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            rewards=REWARDS,
            checkpoints=checkpoints_with(horizon, horizon // 10),
            microseconds=MICROSECONDS.get(name, 0.3),
        )
        for name, policy in {**PERSONALIZED, **EQUAL}.items()
    ]
    count = QUICK_OTHER_WORLDS if quick else OTHER_WORLDS
    horizon = QUICK_WORLDS_HORIZON if quick else WORLDS_HORIZON
    others = tuple(world(WORLD_SEED + number) for number in range(1, count + 1))
    return parts + [
        SimulationPart(
            name=f"worlds-{name}",
            policy=policy,
            problems=others,
            horizon=horizon,
            replications=1,
            seed=seed,
            rewards=REWARDS,
            checkpoints=(horizon,),
            microseconds=MICROSECONDS.get(name, 0.3),
        )
        for name, policy in EQUAL.items()
    ]
