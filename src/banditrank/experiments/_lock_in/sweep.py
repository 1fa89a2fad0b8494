"""Jobs: the paper's policies with many coefficients, and their initial phase at many click rates."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from banditrank._extras import requires
from banditrank.experiments._job import Job
from banditrank.experiments._lock_in.estimate_losses import losses_by_estimator
from banditrank.experiments._paper_policies import COEFFICIENT_POLICIES
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.experiments._synthetic.sweep import synthetic_problem
from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem
from banditrank.model._timeline import as_timeline
from banditrank.policies._ucb_rank import UCBRank
from banditrank.simulation._result import SimulationResult

if TYPE_CHECKING:
    import pandas as pd

HORIZON, QUICK_HORIZON = 300_000, 60_000
REPLICATIONS, QUICK_REPLICATIONS = 200, 20
COEFFICIENTS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
QUICK_COEFFICIENTS = (0.25, 0.5, 2.0)
RATES = (1.0, 0.5, 0.2, 0.1, 0.05)
QUICK_RATES = (1.0, 0.5)
PHASES, QUICK_PHASES = 40, 8
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications of {QUICK_HORIZON:,} of {HORIZON:,} rounds, "
    f"{len(QUICK_COEFFICIENTS)} of {len(COEFFICIENTS)} coefficients, and {QUICK_PHASES} of {PHASES} initial "
    f"phases at {len(QUICK_RATES)} of {len(RATES)} click rates"
)


class InitialPhaseProblem(NamedTuple):
    """Problem on which the initial phase is measured."""

    label: str
    make_problem: Callable[[], Problem]
    horizon: int  # long enough for the phase to end with unscaled click rates


PROBLEMS = {
    "table1": InitialPhaseProblem("Table 1", kdd2012, 5_000),
    "synthetic": InitialPhaseProblem("N = 3, M = 20, K = 4", synthetic_problem, 300_000),
}


@dataclass(frozen=True, kw_only=True)
class LockInJob(SimulationJob):
    """Simulation that records regret halfway and at the end, and the losses of several estimators."""

    keeps_counts: ClassVar[bool] = True

    coefficient: float

    def to_frame(self, result: SimulationResult) -> "pd.DataFrame":
        """Return one row per replication."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        halfway, final = result.regret.T
        equal = self.policy.treatment == "equal"
        [problem] = as_timeline(result.problem).problems
        losses = [losses_by_estimator(problem, counts, equal=equal) for counts in result.counts]
        return pd.DataFrame(
            {
                "replication": result.replications,
                "coefficient": self.coefficient,
                "regret_halfway": halfway,
                "regret": final,
                "optimal_rate": result.optimal_rate[:, -1],
                **{f"loss_{name}": [loss[name] for loss in losses] for name in losses[0]},
            }
        )


@dataclass(frozen=True, kw_only=True)
class InitialPhaseJob(SimulationJob):
    """Simulation that records the duration and regret of the initial phase."""

    rate: float

    def to_frame(self, result: SimulationResult) -> "pd.DataFrame":
        """Return one row per replication."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        return pd.DataFrame(
            {
                "replication": result.replications,
                "rate": self.rate,
                "initial_rounds": result.initial_rounds,
                "ended": result.initial_rounds < result.horizon,
                "regret": result.final_regret,
            }
        )


def scaled(problem: Problem, rate: float) -> Problem:
    """Return a problem with all item means multiplied by a rate."""
    return replace(problem, item_means=rate * problem.item_means, name=f"{problem.name}-rate{rate:g}")


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job per policy and coefficient, and per problem and click rate for the initial phase."""
    horizon = QUICK_HORIZON if quick else HORIZON
    jobs: list[Job] = [
        LockInJob(
            name=f"{name}-{coefficient:g}",
            policy=policy(coefficient),
            problems=(kdd2012(),),
            horizon=horizon,
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=(horizon // 2, horizon),
            coefficient=coefficient,
        )
        for name, policy in COEFFICIENT_POLICIES.items()
        for coefficient in (QUICK_COEFFICIENTS if quick else COEFFICIENTS)
    ]
    for rate in QUICK_RATES if quick else RATES:
        for name, phase in PROBLEMS.items():
            horizon = round(phase.horizon / rate)
            jobs.append(
                InitialPhaseJob(
                    name=f"initial-phase-{name}-{rate:g}",
                    policy=UCBRank(coefficient=0.25),
                    problems=(scaled(phase.make_problem(), rate),),
                    horizon=horizon,
                    replications=QUICK_PHASES if quick else PHASES,
                    seed=seed,
                    checkpoints=(horizon,),
                    microseconds_per_round=0.1,
                    rate=rate,
                )
            )
    return jobs
