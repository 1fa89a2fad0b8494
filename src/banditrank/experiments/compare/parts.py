"""What is run in a suite: every entrant for its regret, and once more, on one core, for its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank.experiments.compare.line_up import Entrant, entrants, make_variant_policy
from banditrank.experiments.compare.suites import Suite
from banditrank.experiments.machine import machine
from banditrank.experiments.part import Part
from banditrank.experiments.simulation_part import SimulationPart, checkpoints_with
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.catalog import ORDERED_SUFFIX
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.progress import Advance
from banditrank.simulation.simulate import simulate

if TYPE_CHECKING:
    import pandas as pd

TIME = "time-of-"  # before the name of a part that measures time

# About how long a round takes for 20 items, in microseconds: for the estimate of the time left.
MICROSECONDS = {
    "thompson-rank": 5.0,
    "cascade-kl-ucb": 8.0,
    "pb-mhb": 12.0,
    "grab": 9.0,
    "pbm-ts": 6.0,
    "comb-ucb1": 4.0,
    "uni-rank": 3.0,
}
USUAL_MICROSECONDS = 1.5
TIMED_ROUNDS = 20_000


@dataclass(frozen=True, kw_only=True)
class TimedPart(Part):
    """How long one run takes on one core: the first `TIMED_ROUNDS` of it."""

    simulated: SimulationPart

    @property
    def rounds(self) -> int:
        """Of the run."""
        return min(self.simulated.horizon, TIMED_ROUNDS)

    @property
    def steps(self) -> int:
        """Rounds."""
        return self.rounds

    @property
    def work(self) -> float:
        """Seconds, about."""
        return self.rounds * self.simulated.microseconds * 1e-6

    @property
    def measures_time(self) -> bool:
        """It does."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return what is timed."""
        return {**self.simulated.settings(), "rounds": self.rounds}

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - always one thread, here
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002
    ) -> "pd.DataFrame":
        """Return one row: rounds, seconds, and the machine that took them."""
        import pandas as pd  # noqa: PLC0415 - heavy

        run = self.simulated
        result = simulate(
            run.policy,
            run.problems[0],
            self.rounds,
            1,
            run.seed,
            rewards=run.rewards,
            click_model=run.click_model,
            checkpoints=(self.rounds,),
            workers=1,
            progress=advance,
        )
        return pd.DataFrame({"rounds": [self.rounds], "seconds": [result.seconds], "machine": [machine()]})


def sweep(suite: Suite, names: Sequence[str], seed: int, *, quick: bool) -> list[Part]:
    """Return the parts of a suite: one an entrant for its regret, one for its time."""
    horizon = suite.quick_horizon if quick else suite.horizon
    problem = suite.make(horizon)
    simulated = [
        SimulationPart(
            name=entrant.label,
            policy=policy,
            problems=(problem,),
            horizon=horizon,
            replications=suite.quick_replications if quick else suite.replications,
            seed=seed,
            rewards=suite.rewards,
            click_model=suite.click_model,
            checkpoints=checkpoints_with(horizon, horizon // 10),
            microseconds=_microseconds(entrant, problem.n_items),
        )
        for entrant, policy in make_entrants(suite, names, horizon)
    ]
    return [*simulated, *(TimedPart(name=f"{TIME}{part.name}", simulated=part) for part in simulated)]


def make_entrants(suite: Suite, names: Sequence[str], horizon: int) -> list[tuple[Entrant, CompiledPolicy]]:
    """Return who takes part in a suite, and the policy of each."""
    problem = suite.make(horizon)
    return [
        (entrant, make_variant_policy(entrant, suite, problem, horizon))
        for entrant in entrants(suite, names, horizon)
    ]


def _microseconds(entrant: Entrant, n_items: int) -> float:
    return MICROSECONDS.get(entrant.name.removesuffix(ORDERED_SUFFIX), USUAL_MICROSECONDS) * max(
        1, n_items / 20
    )
