"""What is run: the paper's policies with the coefficients of its section 5.2."""

from banditrank.experiments.paper_policies import POLICIES
from banditrank.experiments.simulation_part import SimulationPart, checkpoints_with
from banditrank.model.catalog import kdd2012

HORIZON, QUICK_HORIZON = 600_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 100, 20
CUT = f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds"


def sweep(seed: int, *, quick: bool) -> list[SimulationPart]:
    """Return the parts, one a policy."""
    horizon = QUICK_HORIZON if quick else HORIZON
    return [
        SimulationPart(
            name=name,
            policy=policy,
            problems=(kdd2012(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=checkpoints_with(horizon, horizon // 2),
        )
        for name, policy in POLICIES.items()
    ]
