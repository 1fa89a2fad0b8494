"""Jobs: the paper's policies and its baseline, with the coefficients of its section 5.1."""

from banditrank.experiments._simulation_job import SimulationJob, checkpoints_with
from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BetaRewards
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._type_blind import TypeBlindUCB
from banditrank.policies._ucb_rank import UCBRank

PROBLEM_SEED = 0
REWARDS = BetaRewards()
HORIZON, QUICK_HORIZON = 300_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 20, 4
OTHER_PROBLEMS, QUICK_OTHER_PROBLEMS = 20, 4
OTHER_HORIZON, QUICK_OTHER_HORIZON = 200_000, 20_000
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds, and "
    f"{QUICK_OTHER_PROBLEMS} of {OTHER_PROBLEMS} other problems for {QUICK_OTHER_HORIZON:,} of "
    f"{OTHER_HORIZON:,} rounds"
)

BASELINE = "type-blind-ucb-personalized"
PERSONALIZED: dict[str, CompiledPolicy] = {
    "greedy-rank-personalized": GreedyRank(coefficient=1.0),
    "ucb-rank-personalized": UCBRank(coefficient=1.0),
    BASELINE: TypeBlindUCB(coefficient=1.0),
}
EQUAL: dict[str, CompiledPolicy] = {
    f"{policy.name}-equal-{utility}": policy(coefficient=5.0, treatment="equal", utility=utility)
    for utility in ("utilitarian", "nash")
    for policy in (GreedyRank, UCBRank)
}
MICROSECONDS = {
    "greedy-rank-equal-nash": 1.5,
    "ucb-rank-equal-nash": 4.0,
    "ucb-rank-equal-utilitarian": 1.0,
}


def synthetic_problem(seed: int = PROBLEM_SEED) -> Problem:
    """Return a random problem of the paper's size."""
    return make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=seed)


def sweep(seed: int, *, quick: bool) -> list[SimulationJob]:
    """Return one job per policy on one problem, and per equal policy on other problems, once each."""
    horizon = QUICK_HORIZON if quick else HORIZON
    jobs = [
        SimulationJob(
            name=name,
            policy=policy,
            problems=(synthetic_problem(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            rewards=REWARDS,
            checkpoints=checkpoints_with(horizon, horizon // 10),
            microseconds_per_round=MICROSECONDS.get(name, 0.3),
        )
        for name, policy in {**PERSONALIZED, **EQUAL}.items()
    ]
    count = QUICK_OTHER_PROBLEMS if quick else OTHER_PROBLEMS
    horizon = QUICK_OTHER_HORIZON if quick else OTHER_HORIZON
    others = tuple(synthetic_problem(PROBLEM_SEED + offset) for offset in range(1, count + 1))
    return jobs + [
        SimulationJob(
            name=f"other-problems-{name}",
            policy=policy,
            problems=others,
            horizon=horizon,
            replications=1,
            seed=seed,
            rewards=REWARDS,
            checkpoints=(horizon,),
            microseconds_per_round=MICROSECONDS.get(name, 0.3),
        )
        for name, policy in EQUAL.items()
    ]
