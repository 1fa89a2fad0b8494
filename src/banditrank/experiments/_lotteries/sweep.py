"""Jobs: ThompsonRank with one ranking and with one lottery for all, where tastes conflict."""

from banditrank.experiments._job import Job
from banditrank.experiments._simulation_job import SimulationJob, checkpoints_with
from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.policies._base import Treatment
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.utilities._utility import as_utility

HORIZON, QUICK_HORIZON = 100_000, 10_000
REPLICATIONS, QUICK_REPLICATIONS = 40, 4
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds"
)
UTILITIES = ("nash", "maximin")
TREATMENTS: tuple[Treatment, ...] = ("equal", "equal-lottery")


def conflict() -> Problem:
    """Return the problem: every item is the favourite of one of three user types."""
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)


def job_name(treatment: Treatment, utility: str) -> str:
    """Return the name of a job, which is that of its policy."""
    return f"{ThompsonRank.name}-{treatment}-{utility}"


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job for each treatment and utility."""
    horizon = QUICK_HORIZON if quick else HORIZON
    return [
        SimulationJob(
            name=job_name(treatment, utility),
            policy=ThompsonRank(treatment=treatment, utility=as_utility(utility)),
            problems=(conflict(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=tuple(sorted({*checkpoints_with(horizon, horizon // 2), horizon - horizon // 10})),
            microseconds_per_round=15.0,
        )
        for utility in UTILITIES
        for treatment in TREATMENTS
    ]
