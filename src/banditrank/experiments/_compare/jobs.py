"""Jobs of a suite: each policy variant for its regret, and a timed run on one core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.experiments._compare.names import TIMING_PREFIX
from banditrank.experiments._compare.policy_variants import ComparedPolicy, PolicyVariant, policy_variants
from banditrank.experiments._compare.suites import AnyProblem, Suite
from banditrank.experiments._job import Job
from banditrank.experiments._machine_info import describe_machine
from banditrank.experiments._simulation_job import SimulationJob, checkpoints_with
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.policies._base import CompiledPolicy, Policy
from banditrank.policies._catalog import ORDERED_SUFFIX
from banditrank.policies._contextual.catalog import CLUSTERS_SUFFIX
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance
from banditrank.simulation._simulate import AnyPolicy, check_simulation, simulate

if TYPE_CHECKING:
    import pandas as pd

# Approximate time of a round with 20 items, for the progress bar.
MICROSECONDS_PER_ROUND = {
    "thompson-rank": 5.0,
    "cascade-kl-ucb": 8.0,
    "cascade-ts": 3.0,
    "pb-mhb": 12.0,
    "grab": 9.0,
    "pbm-ts": 6.0,
    "comb-ucb1": 4.0,
    "uni-rank": 3.0,
    "cts": 2.5,
    "ftrl-pbm": 5.5,
    "contextual-thompson-rank": 4.0,
    "lin-ucb": 10.0,
    "lin-ts": 4.0,
}
DEFAULT_MICROSECONDS_PER_ROUND = 1.5
INTERPRETED_MICROSECONDS_PER_ROUND = 80.0
MAX_TIMED_ROUNDS = 20_000


@dataclass(frozen=True, kw_only=True)
class TimingJob(Job):
    """Running time of the first `MAX_TIMED_ROUNDS` rounds of a simulation on one core."""

    simulation: SimulationJob

    @property
    def rounds(self) -> int:
        """Number of timed rounds."""
        return min(self.simulation.horizon, MAX_TIMED_ROUNDS)

    @property
    def n_steps(self) -> int:
        """Number of timed rounds."""
        return self.rounds

    @property
    def estimated_seconds(self) -> float:
        """Approximate running time."""
        return self.rounds * self.simulation.microseconds_per_round * 1e-6

    @property
    def is_timing(self) -> bool:
        """True."""
        return True

    def settings(self) -> dict[str, Any]:
        """Return the plain values that the run depends on."""
        return {**self.simulation.settings(), "rounds": self.rounds}

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002 - always one thread
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002 - as above
    ) -> "pd.DataFrame":
        """Return one row: rounds, seconds and machine."""
        with requires("reports", "the study"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        timed = self.simulation
        result = simulate(
            timed.policy,
            timed.problems[0],
            self.rounds,
            1,
            timed.seed,
            rewards=timed.rewards,
            click_model=timed.click_model,
            checkpoints=(self.rounds,),
            workers=1,
            progress=advance,
        )
        return pd.DataFrame(
            {"rounds": [self.rounds], "seconds": [result.seconds], "machine": [describe_machine()]}
        )


def sweep(suite: Suite, policies: Sequence[ComparedPolicy], seed: int, *, quick: bool) -> list[Job]:
    """Return one job per policy variant for its regret, and one for its running time.

    Raises
    ------
    InvalidInputError
        If a custom policy cannot be made or simulated on the problem.
    """
    horizon = suite.quick_horizon if quick else suite.horizon
    n_replications = suite.quick_replications if quick else suite.replications
    seed += suite.seed_offset
    problems = suite.make_problems(horizon, seed=seed, n_replications=n_replications)
    simulations = [
        _simulation(variant, suite, problems, horizon, n_replications // len(problems), seed)
        for variant in policy_variants(suite, policies, horizon)
    ]
    timings = [TimingJob(name=f"{TIMING_PREFIX}{job.name}", simulation=job) for job in simulations]
    return [*simulations, *timings]


def _simulation(
    variant: PolicyVariant,
    suite: Suite,
    problems: Sequence[AnyProblem],
    horizon: int,
    replications: int,
    seed: int,
) -> SimulationJob:
    problem = problems[0]
    policy = variant.make_policy(suite, problem, horizon)
    job = SimulationJob(
        name=variant.label,
        policy=policy,
        problems=problems,
        horizon=horizon,
        replications=replications,
        seed=seed,
        rewards=suite.rewards,
        click_model=suite.click_model,
        checkpoints=checkpoints_with(horizon, max(horizon // 10, 1)),
        microseconds_per_round=_microseconds_per_round(variant, policy, problem.n_items),
    )
    if variant.policy.custom is not None and not isinstance(problem, ContextualProblem):
        check_simulation(policy, problem, suite.rewards, suite.click_model)
    try:
        job.digest()  # before anything runs
    except TypeError as error:
        rule = f"must have a description and a fingerprint of plain values ({error})"
        raise InvalidInputError("policies", rule, variant.label) from None
    return job


def _microseconds_per_round(variant: PolicyVariant, policy: AnyPolicy, n_items: int) -> float:
    if isinstance(policy, Policy) and not isinstance(policy, CompiledPolicy):
        return INTERPRETED_MICROSECONDS_PER_ROUND
    name = variant.policy.name.removesuffix(ORDERED_SUFFIX)
    if name.endswith(CLUSTERS_SUFFIX):
        name = ThompsonRank.name
    return MICROSECONDS_PER_ROUND.get(name, DEFAULT_MICROSECONDS_PER_ROUND) * max(1, n_items / 20)
