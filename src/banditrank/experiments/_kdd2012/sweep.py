"""Jobs: the paper's policies with the coefficients of its section 5.2."""

from banditrank.experiments._paper_policies import POLICIES
from banditrank.experiments._simulation_job import SimulationJob, checkpoints_with
from banditrank.model._catalog import kdd2012

HORIZON, QUICK_HORIZON = 600_000, 100_000
REPLICATIONS, QUICK_REPLICATIONS = 100, 20
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds"
)


def sweep(seed: int, *, quick: bool) -> list[SimulationJob]:
    """Return one job per policy."""
    horizon = QUICK_HORIZON if quick else HORIZON
    return [
        SimulationJob(
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
