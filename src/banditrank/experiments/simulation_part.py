"""The part that most studies are made of: a policy learns a world, or several, some number of times."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from banditrank.experiments.part import Part
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.problem import Problem
from banditrank.model.rewards import BernoulliRewards, Rewards
from banditrank.model.timeline import Timeline
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.local import LocalBackend
from banditrank.simulation.progress import Advance
from banditrank.simulation.result import SimulationResult
from banditrank.simulation.simulate import default_checkpoints, simulate

if TYPE_CHECKING:
    import pandas as pd


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a part before its end."""


def checkpoints_with(horizon: int, another: int) -> tuple[int, ...]:
    """Return the checkpoints that a simulation has by itself, and one more.

    Examples
    --------
    >>> checkpoints_with(5, 3)
    (1, 2, 3, 4, 5)
    """
    return tuple(sorted({*default_checkpoints(horizon).tolist(), another}))


@dataclass(frozen=True, kw_only=True)
class SimulationPart(Part):
    """A policy on one world or more; the data are its curves.

    Parameters
    ----------
    policy
        Who learns.
    problems
        The worlds.
    horizon, replications, seed, rewards, click_model, checkpoints
        As for `banditrank.simulate`; replications of each world.
    microseconds
        About how long a round takes.
    """

    keeps_counts: ClassVar[bool] = False  # whether `summarise` needs the counts at the end

    policy: CompiledPolicy
    problems: Sequence[Problem | Timeline]
    horizon: int
    replications: int
    seed: int
    rewards: Rewards = field(default_factory=BernoulliRewards)
    click_model: ClickModel = SINGLE_LOOK
    checkpoints: Sequence[int] | None = None
    microseconds: float = 0.3

    @property
    def steps(self) -> int:
        """Rounds, in all."""
        return self.horizon * self.replications * len(self.problems)

    @property
    def work(self) -> float:
        """Seconds, about, on one core."""
        return self.steps * self.microseconds * 1e-6 + 0.5

    def settings(self) -> dict[str, Any]:
        """Return what the curves depend on."""
        return {
            "policy": self.policy.fingerprint(),
            "problems": [problem.to_dict() for problem in self.problems],
            "horizon": self.horizon,
            "replications": self.replications,
            "seed": self.seed,
            "rewards": str(self.rewards),
            "click_model": str(self.click_model),
            "checkpoints": None if self.checkpoints is None else [int(t) for t in self.checkpoints],
        }

    def run(self, *, workers: int | None, advance: Advance, backend: Backend | None = None) -> "pd.DataFrame":
        """Return one row for each world, replication and checkpoint."""
        import pandas as pd  # noqa: PLC0415 - heavy

        frames = []
        for number, problem in enumerate(self.problems):
            result = self.simulate(problem, backend or LocalBackend(workers), advance)
            frame = self.summarise(result)
            frame.insert(0, "world", number)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def simulate(self, problem: Problem | Timeline, backend: Backend, advance: Advance) -> SimulationResult:
        """Return the result of all replications, or raise `Interrupted`."""
        result = simulate(
            self.policy,
            problem,
            self.horizon,
            self.replications,
            self.seed,
            rewards=self.rewards,
            click_model=self.click_model,
            checkpoints=self.checkpoints,
            backend=backend,
            progress=advance,
            keep_counts=self.keeps_counts,
        )
        if not result.is_complete:
            raise Interrupted
        return result

    def summarise(self, result: SimulationResult) -> "pd.DataFrame":
        """Return what is kept of a result."""
        frame = result.to_frame()
        frame["initial_rounds"] = result.initial_rounds.repeat(len(result.checkpoints))
        return frame
