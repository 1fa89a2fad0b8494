"""Jobs: each row of the table for its regret, and timed runs on one core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank._extras import requires
from banditrank.experiments._job import Job
from banditrank.experiments._machine_info import describe_machine
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.model._catalog import kdd2012
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._ucb_rank import UCBRank
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance
from banditrank.simulation._simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = (300_000, 600_000)
REPLICATIONS, QUICK_REPLICATIONS = 100, 12
TIMED_RUNS, QUICK_TIMED_RUNS = 7, 4  # with fewer than 4 of each, no difference is significant at the 5% level
QUICK_SCALE = (
    f"{QUICK_REPLICATIONS} of {REPLICATIONS} replications, and {QUICK_TIMED_RUNS} of {TIMED_RUNS} runs for "
    "the running time"
)
ROWS: dict[str, CompiledPolicy] = {
    "greedy-sampled": GreedyRank(coefficient=0.5, treatment="equal", solver="sampling"),
    "greedy-exact": GreedyRank(coefficient=0.5, treatment="equal"),
    "ucb-sampled": UCBRank(coefficient=0.5, treatment="equal", solver="sampling"),
    "ucb-exact": UCBRank(coefficient=0.5, treatment="equal"),
}


@dataclass(frozen=True, kw_only=True)
class RunningTimeJob(Job):
    """Running time of each row on one core; rows alternate, because machines are noisy."""

    rows: Sequence[str]
    runs: int
    seed: int

    @property
    def n_steps(self) -> int:
        """Total number of rounds."""
        return self.runs * len(self.rows) * sum(ROUNDS)

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time."""
        return self.n_steps * 1e-6

    @property
    def is_timing(self) -> bool:
        """True."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the runs depend on."""
        return {"rows": list(self.rows), "runs": self.runs, "seed": self.seed}

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - one core, as in the paper
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002 - as above
    ) -> "pd.DataFrame":
        """Return one row per run: policy, rounds, seconds and machine."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        records = []
        for run in range(self.runs):
            for name in self.rows:
                for rounds in ROUNDS:
                    result = simulate(
                        ROWS[name],
                        kdd2012(),
                        rounds,
                        replications=1,
                        seed=self.seed + run,
                        checkpoints=(rounds,),
                        workers=1,
                        progress=advance,
                    )
                    records.append((name, run, rounds, result.seconds, describe_machine()))
        return pd.DataFrame(records, columns=["row", "run", "rounds", "seconds", "machine"])


def sweep(seed: int, *, quick: bool) -> list[Job]:
    """Return one job per row for its regret, and one for the running times of all."""
    jobs: list[Job] = [
        SimulationJob(
            name=name,
            policy=policy,
            problems=(kdd2012(),),
            horizon=ROUNDS[-1],
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=ROUNDS,
            microseconds_per_round=0.6 if name.endswith("sampled") else 0.3,
        )
        for name, policy in ROWS.items()
    ]
    runs = QUICK_TIMED_RUNS if quick else TIMED_RUNS
    return [*jobs, RunningTimeJob(name="running-time", rows=tuple(ROWS), runs=runs, seed=seed)]
