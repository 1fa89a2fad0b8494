"""Job that simulates a policy on one or more problems."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from banditrank._extras import requires
from banditrank.experiments._job import Job
from banditrank.model._click_models import SINGLE_LOOK, ClickModel
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, Rewards
from banditrank.model._timeline import Timeline
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.local import LocalBackend
from banditrank.simulation._component_identities import component_identities, own_digests
from banditrank.simulation._progress import Advance
from banditrank.simulation._result import SimulationResult
from banditrank.simulation._simulate import AnyPolicy, default_checkpoints, simulate

if TYPE_CHECKING:
    import pandas as pd


class JobInterrupted(KeyboardInterrupt):
    """A job was interrupted before it finished."""


def checkpoints_with(horizon: int, another: int) -> tuple[int, ...]:
    """Return the default checkpoints of a simulation and one more.

    Examples
    --------
    >>> checkpoints_with(5, 3)
    (1, 2, 3, 4, 5)
    """
    return tuple(sorted({*default_checkpoints(horizon).tolist(), another}))


@dataclass(frozen=True, kw_only=True)
class SimulationJob(Job):
    """Simulation of a policy; the data are its regret curves.

    Parameters
    ----------
    policy
        Policy to simulate.
    problems
        Problems to simulate it on.
    horizon, replications, seed, rewards, click_model, checkpoints
        As for `banditrank.simulate`; replications per problem.
    microseconds_per_round
        Approximate time of a round.
    """

    keeps_counts: ClassVar[bool] = False  # whether `to_frame` needs the final counts

    policy: AnyPolicy
    problems: Sequence[Problem | Timeline | ContextualProblem]
    horizon: int
    replications: int
    seed: int
    rewards: Rewards = field(default_factory=BernoulliRewards)
    click_model: ClickModel = SINGLE_LOOK
    checkpoints: Sequence[int] | None = None
    microseconds_per_round: float = 0.3

    @property
    def n_steps(self) -> int:
        """Total number of rounds."""
        return self.horizon * self.replications * len(self.problems)

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time on one core."""
        return self.n_steps * self.microseconds_per_round * 1e-6 + 0.5

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the curves depend on.

        Raises
        ------
        InvalidInputError
            If code of the user's own cannot be told apart from other code.
        """
        return {
            **({"own_code": self._own_digests} if self._own_digests else {}),
            "policy": self.policy.fingerprint(),
            "problems": [problem.to_dict() for problem in self.problems],
            "horizon": self.horizon,
            "replications": self.replications,
            "seed": self.seed,
            "rewards": str(self.rewards),
            "click_model": str(self.click_model),
            "checkpoints": None if self.checkpoints is None else [int(t) for t in self.checkpoints],
        }

    @cached_property
    def _own_digests(self) -> list[dict[str, str]]:
        """Digests of components with own code, for each problem; empty if all is built in."""
        components = [
            own_digests(component_identities(self.policy, problem, self.rewards, self.click_model))
            for problem in self.problems
        ]
        return components if any(components) else []

    def run(self, *, workers: int | None, advance: Advance, backend: Backend | None = None) -> "pd.DataFrame":
        """Return one row per problem, replication and checkpoint."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        frames = []
        for index, problem in enumerate(self.problems):
            result = self.simulate(problem, backend or LocalBackend(workers), advance)
            frame = self.to_frame(result)
            frame.insert(0, "problem", index)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def simulate(
        self, problem: Problem | Timeline | ContextualProblem, backend: Backend, advance: Advance
    ) -> SimulationResult:
        """Simulate all replications of one problem.

        Raises
        ------
        JobInterrupted
            If the simulation was interrupted.
        """
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
            raise JobInterrupted
        return result

    def to_frame(self, result: SimulationResult) -> "pd.DataFrame":
        """Return the data to store from a simulation result."""
        frame = result.to_frame().drop(columns=["policy", "problem", "seed"])
        frame["initial_rounds"] = result.initial_rounds.repeat(len(result.checkpoints))
        return frame
