"""What is run: the rows of the table, for their regret and, one run at a time, for their running time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank.experiments.machine import machine
from banditrank.experiments.part import Part
from banditrank.experiments.simulation_part import SimulationPart
from banditrank.model.catalog import kdd2012
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.ucb_rank import UCBRank
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.progress import Advance
from banditrank.simulation.simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = (300_000, 600_000)
REPLICATIONS, QUICK_REPLICATIONS = 100, 12
TIMED_RUNS, QUICK_TIMED_RUNS = 7, 4  # fewer than 4 of each decide nothing at the 5% level
CUT = (
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
class TimingPart(Part):
    """How long one run of each row takes on one core; the rows take turns, because machines are noisy."""

    rows: Sequence[str]
    runs: int
    seed: int

    @property
    def steps(self) -> int:
        """Rounds, in all."""
        return self.runs * len(self.rows) * sum(ROUNDS)

    @property
    def work(self) -> float:
        """Seconds, about."""
        return self.steps * 1e-6

    @property
    def measures_time(self) -> bool:
        """It does."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return what is timed."""
        return {"rows": list(self.rows), "runs": self.runs, "seed": self.seed}

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - one core, as the paper
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002 - as above
    ) -> "pd.DataFrame":
        """Return one row for each run: policy, rounds and seconds."""
        import pandas as pd  # noqa: PLC0415 - heavy

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
                    records.append((name, run, rounds, result.seconds, machine()))
        return pd.DataFrame(records, columns=["row", "run", "rounds", "seconds", "machine"])


def sweep(seed: int, *, quick: bool) -> list[Part]:
    """Return the parts: the regret of each row, and the times of all."""
    parts: list[Part] = [
        SimulationPart(
            name=name,
            policy=policy,
            problems=(kdd2012(),),
            horizon=ROUNDS[-1],
            replications=QUICK_REPLICATIONS if quick else REPLICATIONS,
            seed=seed,
            checkpoints=ROUNDS,
            microseconds=0.6 if name.endswith("sampled") else 0.3,
        )
        for name, policy in ROWS.items()
    ]
    runs = QUICK_TIMED_RUNS if quick else TIMED_RUNS
    return [*parts, TimingPart(name="running-time", rows=tuple(ROWS), runs=runs, seed=seed)]
