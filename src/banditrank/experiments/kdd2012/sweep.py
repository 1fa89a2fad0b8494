"""What is run: the paper's policies with the coefficients of its section 5.2."""

from banditrank.experiments.simulation_part import SimulationPart
from banditrank.model.catalog import kdd2012
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.ucb_rank import UCBRank
from banditrank.simulation.simulate import default_checkpoints

HORIZON, QUICK_HORIZON = 600_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 100, 20
CUT = f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds"

POLICIES: dict[str, CompiledPolicy] = {
    "greedy-personalized": GreedyRank(0.25),
    "ucb-personalized": UCBRank(0.25),
    "greedy-equal": GreedyRank(0.5, treatment="equal"),
    "ucb-equal": UCBRank(0.5, treatment="equal"),
}


def sweep(seed: int, quick: bool) -> list[SimulationPart]:  # noqa: FBT001 - as `Study` has it
    """Return the parts, one a policy."""
    horizon = QUICK_HORIZON if quick else HORIZON
    checkpoints = tuple(sorted({*default_checkpoints(horizon).tolist(), horizon // 2}))
    return [
        SimulationPart(
            name=name,
            policy=policy,
            problems=(kdd2012(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=checkpoints,
        )
        for name, policy in POLICIES.items()
    ]
