"""What GreedyRank and UCBRank share: treatments, the initial phase, and how equal treatment is solved."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators.smoothing import Smoothing
from banditrank.policies.assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies.base import CompiledPolicy, Kernel, Treatment, check_treatment
from banditrank.policies.equal_ranking import EQUAL_KERNEL, init_equal
from banditrank.policies.loop_solvers import check_solver, choose_loop_solver
from banditrank.policies.general_learner import init_recomputed_estimates
from banditrank.policies.recomputed_ranking import (
    RECOMPUTED_EQUAL_KERNEL,
    RECOMPUTED_PERSONALIZED_KERNEL,
    init_recomputed_equal,
    init_recomputed_personalized,
)
from banditrank.policies.running_estimates import INITIAL_ROUNDS, UNREWARDED, AugmentedCounts
from banditrank.policies.personalized_ranking import PERSONALIZED_KERNEL, init_personalized
from banditrank.policies.schedules import Schedule, as_schedule
from banditrank.solvers.solve import SolverName
from banditrank.counts.counts import Counts
from banditrank.utilities.utility import Utility, as_utility

EstimatorName: TypeAlias = Literal["paper", "likelihood"]

NEW_ITEM_DISPLAYS = 8.0  # displays of a new item at each position: 1 is too few for GreedyRank to try it in earnest


@dataclass(frozen=True, init=False)
class PaperPolicy(CompiledPolicy):
    """A policy of the paper: initial phase, then the best ranking by estimate plus bonus, or exploration.

    Parameters
    ----------
    schedule
        A coefficient (of the schedule in the paper's experiments), a `Schedule`, or any function of t.
    treatment
        ``personalized``: a ranking for each type. ``equal``: one for all.
    utility
        What equal treatment maximises: a `Utility` or its name.
    solver
        How equal treatment is solved; ``auto`` picks by the utility's shape.
    estimator
        ``paper``: Algorithm 1. ``likelihood``: see `banditrank.estimators.maximum_likelihood`.
    smoothing
        Pseudo-counts to start with instead of the paper's initial phase.
    """

    assumptions: ClassVar[Assumptions] = RANK_ONE_REWARDS

    schedule: Schedule
    treatment: Treatment
    utility: Utility
    solver: SolverName
    estimator: EstimatorName
    smoothing: Smoothing | None

    def __init__(
        self,
        schedule: float | Schedule | Callable[[int], float],
        *,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
        solver: SolverName = "auto",
        estimator: EstimatorName = "paper",
        smoothing: Smoothing | None = None,
    ) -> None:
        check_treatment(treatment)
        values = {
            "schedule": as_schedule(schedule, type(self).coefficient_schedule),
            "treatment": treatment,
            "utility": as_utility(utility),
            "solver": solver,
            "estimator": estimator,
            "smoothing": smoothing,
        }
        if estimator not in get_args(EstimatorName):
            raise UnknownNameError("estimator", estimator, get_args(EstimatorName))
        if smoothing is not None and not isinstance(smoothing, Smoothing):
            raise InvalidInputError("smoothing", "must be a Smoothing", smoothing)
        for field, value in values.items():
            object.__setattr__(self, field, value)
        check_solver(self.solver, self.utility, self.treatment)

    @staticmethod
    @abstractmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return the schedule that a coefficient means in the paper's experiments."""

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        return {
            **super().describe(),
            "coefficient": self.schedule.coefficient,
            "schedule": self.schedule.name,
            "solver": self.solver if self.treatment == "equal" else None,
            "estimator": self.estimator,
            "smoothing": None if self.smoothing is None else str(self.smoothing),
        }

    def fingerprint(self) -> dict[str, Any]:
        """Return the description and samples of the schedule and the utility."""
        return {**super().fingerprint(), "schedule_sample": self.schedule.sample()}

    def new_scratch(self) -> NDArray[np.int64]:
        """Return I_explore, the place of the round-robin, shape (1,)."""
        return np.ones(1, dtype=np.int64)

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a place drawn at random, so that callers who keep none explore all items alike."""
        return rng.integers(1, counts.n_items + 1, size=1)

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the formulas for the treatment and the solver."""
        if self.treatment == "personalized":
            return PERSONALIZED_KERNEL if self._uses_running_estimates else RECOMPUTED_PERSONALIZED_KERNEL
        self._solver(n_items=n_items, n_positions=n_positions)  # refuses what is too large
        return EQUAL_KERNEL if self._uses_running_estimates else RECOMPUTED_EQUAL_KERNEL

    def init_state(self, counts: Counts, scratch: NDArray[np.int64]) -> Any:
        """Return the state for counts."""
        augmented = None if self.smoothing is None else self.smoothing.smoothed(counts)
        return self._init_state(counts, scratch, augmented)

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:
        """Return the state for other items: the initial phase goes on for cells that it was waiting for only.

        Others without a reward begin as if they had been shown `NEW_ITEM_DISPLAYS` times and rewarded by everybody
        who looked there, so that new items are tried. These displays are kept apart from the counts.
        """
        if self.smoothing is not None:
            return super().update_items(state, counts, previous)
        waiting = (state.estimates.rewards[:, :, previous] <= 0) & (previous >= 0)
        extra = NEW_ITEM_DISPLAYS * ((counts.rewards_by_position <= 0) & ~waiting)  # (N, K, M)
        looks = state.estimates.evidence.preferences[:, :, None]
        augmented = counts.displays_by_position + extra, counts.rewards_by_position + extra * looks
        resumed = self._init_state(counts, self.new_scratch(), augmented)
        over = self.initial_rounds(state)
        resumed.estimates.phase[INITIAL_ROUNDS] = counts.rounds if over is None else over
        return resumed

    def _init_state(self, counts: Counts, scratch: NDArray[np.int64], augmented: AugmentedCounts | None) -> Any:
        if self._uses_running_estimates and self.treatment == "personalized":
            return init_personalized(counts, scratch, augmented)
        solver = self._solver(n_items=counts.n_items, n_positions=counts.n_positions)
        if self._uses_running_estimates:
            return init_equal(counts, scratch, augmented, self.utility, solver)
        estimates = init_recomputed_estimates(counts, scratch, augmented, by_likelihood=self.estimator == "likelihood")
        if self.treatment == "personalized":
            return init_recomputed_personalized(estimates)
        return init_recomputed_equal(estimates, self.utility, solver)

    def initial_rounds(self, state: Any) -> int | None:
        """Return how many rounds the initial phase of this state took, None if it is still going on."""
        phase = state.estimates.phase
        return None if phase[UNREWARDED] > 0 else int(phase[INITIAL_ROUNDS])

    @property
    def _uses_running_estimates(self) -> bool:
        """Whether the lean formulas for Algorithm 1 after an initial phase will do."""
        return self.estimator == "paper" and self.smoothing is None

    def _solver(self, *, n_items: int, n_positions: int) -> SolverName:
        return choose_loop_solver(self.solver, self.utility, n_items=n_items, n_positions=n_positions)
