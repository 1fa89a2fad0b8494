"""Base class of GreedyRank and UCBRank: treatments, the initial phase, and the solver of equal treatment."""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators._smoothing import Smoothing
from banditrank.policies._assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment, check_treatment, check_utility
from banditrank.policies._equal_ranking import EQUAL_KERNEL, PERSONALIZED_LOTTERY_KERNEL, init_equal
from banditrank.policies._kernel import Kernel
from banditrank.policies._loop_solvers import (
    LoopSolver,
    check_solver,
    choose_loop_solver,
    init_loop_solver,
    init_lottery_solver,
)
from banditrank.policies._personalized_ranking import PERSONALIZED_KERNEL, init_personalized
from banditrank.policies._policy_guarantees import check_guarantees
from banditrank.policies._recomputed_ranking import (
    RECOMPUTED_EQUAL_KERNEL,
    RECOMPUTED_PERSONALIZED_KERNEL,
    RECOMPUTED_PERSONALIZED_LOTTERY_KERNEL,
    init_recomputed_equal,
    init_recomputed_estimates,
    init_recomputed_personalized,
)
from banditrank.policies._restricted_solver import RestrictedSolver, init_restricted_solver
from banditrank.policies._running_estimates import INITIAL_ROUNDS, UNREWARDED, AugmentedCounts
from banditrank.policies.schedules import Schedule, as_schedule
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._solve import SolverName
from banditrank.utilities._utility import Utility

EstimatorName: TypeAlias = Literal["paper", "likelihood"]

PAPER_COEFFICIENTS: dict[Treatment, float] = {"personalized": 0.25, "equal": 0.5, "equal-lottery": 0.5}
"""c of the paper's experiment on Table 1, by treatment; it has no lotteries, which use that of ``equal``."""

NEW_ITEM_DISPLAYS = 8.0  # pseudo-displays of a new item at each position; with 1, GreedyRank hardly tries it


@dataclass(frozen=True, init=False)
class PaperPolicy(CompiledPolicy):
    """A policy of the paper: an initial phase, then the ranking with the best estimates plus bonuses.

    Parameters
    ----------
    coefficient
        c of the schedule in the paper's experiments; that of its experiment on Table 1 by default.
    schedule
        A `Schedule` or any function of the round, instead of a coefficient.
    treatment
        ``personalized``: a ranking for each user type, or with guarantees a lottery. ``equal``: one ranking
        for all. ``equal-lottery``: one lottery over rankings for all, from which each user's ranking is
        drawn.
    utility
        Utility that equal treatment maximises, or its name; that of expected values under ``equal-lottery``,
        where it must be concave or maximin.
    solver
        Solver of ``equal`` treatment; ``auto`` chooses it by the utility.
    estimator
        ``paper``: Algorithm 1. ``likelihood``: see `banditrank.estimators._maximum_likelihood`.
    smoothing
        Pseudo-counts to start with, instead of the paper's initial phase.
    guarantees
        Least exposures of items (`LeastExposure`) and least values of user types (`KeptShare`), by index,
        under ``equal-lottery`` and ``personalized`` treatment, which then has a lottery for each type. The
        lotteries keep them by the estimates of their round; those of UCBRank under personalized treatment,
        by estimates plus bonuses.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid, or both a coefficient and a schedule are given.
    UnsolvableError
        If the solver cannot maximise the utility.
    """

    assumptions: ClassVar[Assumptions] = RANK_ONE_REWARDS

    schedule: Schedule
    treatment: Treatment
    utility: Utility
    solver: SolverName
    estimator: EstimatorName
    smoothing: Smoothing | None
    guarantees: tuple[Guarantee, ...]

    def __init__(
        self,
        *,
        coefficient: float | None = None,
        schedule: Schedule | Callable[[int], float] | None = None,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
        solver: SolverName = "auto",
        estimator: EstimatorName = "paper",
        smoothing: Smoothing | None = None,
        guarantees: Iterable[Guarantee] = (),
    ) -> None:
        check_treatment(treatment)
        values = {
            "schedule": self._make_schedule(coefficient, schedule, treatment),
            "treatment": treatment,
            "utility": check_utility(utility, treatment),
            "solver": solver,
            "estimator": estimator,
            "smoothing": smoothing,
            "guarantees": check_guarantees(guarantees, treatment),
        }
        if estimator not in get_args(EstimatorName):
            raise UnknownNameError("estimator", estimator, get_args(EstimatorName))
        if smoothing is not None and not isinstance(smoothing, Smoothing):
            raise InvalidInputError("smoothing", "must be a Smoothing", smoothing)
        for field, value in values.items():
            object.__setattr__(self, field, value)
        check_solver(self.solver, self.utility, self.treatment)

    @classmethod
    def _make_schedule(
        cls,
        coefficient: float | None,
        schedule: Schedule | Callable[[int], float] | None,
        treatment: Treatment,
    ) -> Schedule:
        if schedule is None:
            default = PAPER_COEFFICIENTS[treatment]
            return cls.coefficient_schedule(default if coefficient is None else coefficient)
        if coefficient is not None:
            raise InvalidInputError("coefficient", "must be left out if a schedule is given", coefficient)
        return as_schedule(schedule)

    @staticmethod
    @abstractmethod
    def coefficient_schedule(coefficient: float) -> Schedule:
        """Return the schedule of a coefficient in the paper's experiments."""

    @property
    def has_candidates(self) -> bool:  # type: ignore[override]
        """Whether it can rank some of the items: not by a lottery."""
        return not self.has_lotteries

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
        """Return the description, and samples of the schedule and the utility."""
        return {**super().fingerprint(), "schedule_sample": self.schedule.sample()}

    def new_scratch(self) -> NDArray[np.int64]:
        """Return I_explore, the turn of the round-robin exploration, shape (1,)."""
        return np.ones(1, dtype=np.int64)

    def random_scratch(self, counts: Counts, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a random turn, so that callers that keep no scratch explore all items equally."""
        return rng.integers(1, counts.n_items + 1, size=1)

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the compiled functions for the treatment and the estimator.

        Raises
        ------
        UnsolvableError
            If the solver cannot solve problems of this size.
        """
        if self.treatment == "personalized":
            if self.has_lotteries:
                is_running = self._uses_running_estimates
                return PERSONALIZED_LOTTERY_KERNEL if is_running else RECOMPUTED_PERSONALIZED_LOTTERY_KERNEL
            return PERSONALIZED_KERNEL if self._uses_running_estimates else RECOMPUTED_PERSONALIZED_KERNEL
        if self.treatment == "equal":
            self._loop_solver(n_items=n_items, n_positions=n_positions)  # raises if too large
        return EQUAL_KERNEL if self._uses_running_estimates else RECOMPUTED_EQUAL_KERNEL

    def init_state(self, counts: Counts, scratch: NDArray[np.int64]) -> Any:
        """Return the state for counts."""
        augmented = None if self.smoothing is None else self.smoothing.smoothed(counts)
        return self._init_state(counts, scratch, augmented)

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> RestrictedSolver | None:
        """Return a solver among candidates for equal treatment, None for personalized treatment."""
        if self.treatment == "personalized":
            return None
        return init_restricted_solver(
            self._loop_solver(n_items=n_items, n_positions=n_positions),
            self.utility,
            n_user_types=n_user_types,
            n_items=n_items,
            n_positions=n_positions,
        )

    def update_items(self, state: Any, counts: Counts, previous: NDArray[np.intp]) -> Any:
        """Return the state for other items; the initial phase continues only for the cells it waited for.

        Other cells without a reward start as if displayed `NEW_ITEM_DISPLAYS` times, and rewarded by every
        user who looked there, so that new items are tried. These pseudo-counts are not added to the counts.
        """
        if self.smoothing is not None:
            return super().update_items(state, counts, previous)
        waiting = (state.estimates.rewards[:, :, previous] <= 0) & (previous >= 0)
        extra = NEW_ITEM_DISPLAYS * ((counts.rewards_by_position <= 0) & ~waiting)  # (N, K, M)
        looks = state.estimates.evidence.preferences[:, :, None]
        augmented = counts.displays_by_position + extra, counts.rewards_by_position + extra * looks
        updated = self._init_state(counts, self.new_scratch(), augmented)
        over = self.initial_rounds(state)
        updated.estimates.phase[INITIAL_ROUNDS] = counts.rounds if over is None else over
        return updated

    def _init_state(
        self, counts: Counts, scratch: NDArray[np.int64], augmented: AugmentedCounts | None
    ) -> Any:
        has_rankings = self.treatment == "personalized" and not self.has_lotteries
        if self._uses_running_estimates and has_rankings:
            return init_personalized(counts, scratch, augmented)
        if self._uses_running_estimates:
            return init_equal(counts, scratch, augmented, self._new_solver(counts))
        estimates = init_recomputed_estimates(
            counts, scratch, augmented, by_likelihood=self.estimator == "likelihood"
        )
        if has_rankings:
            return init_recomputed_personalized(estimates)
        return init_recomputed_equal(estimates, self._new_solver(counts))

    def initial_rounds(self, state: Any) -> int | None:
        """Return the length of the initial phase in rounds, None if it has not ended."""
        phase = state.estimates.phase
        return None if phase[UNREWARDED] > 0 else int(phase[INITIAL_ROUNDS])

    @property
    def _uses_running_estimates(self) -> bool:
        """Whether Algorithm 1 after an initial phase applies, whose estimates are updated incrementally."""
        return self.estimator == "paper" and self.smoothing is None

    def _new_solver(self, counts: Counts) -> LoopSolver:
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        sizes = {"n_user_types": n, "n_items": m, "n_positions": k}
        if self.has_lotteries:
            return init_lottery_solver(self.treatment, self.utility, self.guarantees, **sizes)
        return init_loop_solver(self._loop_solver(n_items=m, n_positions=k), self.utility, **sizes)

    def _loop_solver(self, *, n_items: int, n_positions: int) -> SolverName:
        return choose_loop_solver(self.solver, self.utility, n_items=n_items, n_positions=n_positions)
