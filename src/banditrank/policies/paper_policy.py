"""What GreedyRank and UCBRank share: treatments, the initial phase, and how equal treatment is solved."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError
from banditrank.policies.assumptions import ONE_FACTOR_EACH, Assumptions
from banditrank.policies.base import CompiledPolicy, Kernel, Treatment, check_treatment
from banditrank.policies.equal import EQUAL, start_equal
from banditrank.policies.equal_solvers import loop_solver
from banditrank.policies.learner import INITIAL_ROUNDS, UNREWARDED, Learner
from banditrank.policies.personalized import PERSONALIZED, start_personalized
from banditrank.policies.schedules import Schedule, as_schedule
from banditrank.solvers.solve import SolverName
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import Utility, find_utility


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
    """

    assumptions: ClassVar[Assumptions] = ONE_FACTOR_EACH

    schedule: Schedule
    treatment: Treatment
    utility: Utility
    solver: SolverName

    def __init__(
        self,
        schedule: float | Schedule | Callable[[int], float],
        *,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
        solver: SolverName = "auto",
    ) -> None:
        check_treatment(treatment)
        values = {
            "schedule": as_schedule(schedule, type(self).coefficient_schedule),
            "treatment": treatment,
            "utility": find_utility(utility),
            "solver": solver,
        }
        if treatment == "personalized" and solver != "auto":
            raise InvalidInputError("solver", "must be auto under personalized treatment", solver)
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if treatment == "equal":
            self._solver(n_items=2, n_positions=1)  # refuses what no size could make right

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
            return PERSONALIZED
        return EQUAL[self._solver(n_items=n_items, n_positions=n_positions)]

    def start(self, counts: Counts, scratch: NDArray[np.int64]) -> Any:
        """Return the state for counts."""
        if self.treatment == "personalized":
            return start_personalized(counts, scratch)
        solver = self._solver(n_items=counts.n_items, n_positions=counts.n_positions)
        return start_equal(counts, scratch, self.utility, solver)

    def initial_rounds(self, state: Any) -> int | None:
        """Return how many rounds the initial phase of this state took, None if it is still going on."""
        learner: Learner = state.learner if self.treatment == "personalized" else state.beliefs.learner
        return None if learner.clock[UNREWARDED] > 0 else int(learner.clock[INITIAL_ROUNDS])

    def _solver(self, *, n_items: int, n_positions: int) -> SolverName:
        return loop_solver(self.solver, self.utility, n_items=n_items, n_positions=n_positions)
