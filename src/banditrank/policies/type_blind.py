"""The paper's baseline: a policy that takes all users for one type."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.policies.assumptions import ONE_FACTOR_EACH, Assumptions
from banditrank.policies.base import CompiledPolicy, Kernel, Treatment, check_treatment
from banditrank.policies.ucb_rank import UCBRank
from banditrank.statistics.counts import Counts
from banditrank.utilities.utility import Utility, find_utility


@dataclass(frozen=True, init=False)
class TypeBlindUCB(CompiledPolicy):
    """UCBRank's index on counts that are pooled over user types.

    Its initial phase ends when every item was clicked at every position by anybody.

    Parameters
    ----------
    schedule
        As for `UCBRank`.
    treatment, utility
        What its regret is measured against; its rankings are the same for all types in any case.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[50], [9]], [[850], [1]]], [[[20], [3]], [[430], [0]]], [59, 851])
    >>> TypeBlindUCB(0.0).rank(counts, 1, rng=np.random.default_rng(1))
    array([0])
    """

    name: ClassVar[str] = "type-blind-ucb"
    distinguishes_user_types = False
    assumptions: ClassVar[Assumptions] = ONE_FACTOR_EACH

    inner: UCBRank
    treatment: Treatment
    utility: Utility

    def __init__(
        self,
        schedule: Any,
        *,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
    ) -> None:
        check_treatment(treatment)
        object.__setattr__(self, "inner", UCBRank(schedule))
        object.__setattr__(self, "treatment", treatment)
        object.__setattr__(self, "utility", find_utility(utility))

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        schedule = self.inner.schedule
        return {**super().describe(), "coefficient": schedule.coefficient, "schedule": schedule.name}

    def fingerprint(self) -> dict[str, Any]:
        """Return the description and samples of the schedule and the utility."""
        return {**super().fingerprint(), "schedule_sample": self.inner.schedule.sample()}

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return UCBRank's formulas."""
        return self.inner.kernel(n_items=n_items, n_positions=n_positions)

    def start(self, counts: Counts, scratch: Any) -> Any:
        """Return UCBRank's state for pooled counts."""
        return self.inner.start(counts, scratch)

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return UCBRank's."""
        return self.inner.parameters(rounds)

    def new_scratch(self) -> Any:
        """Return UCBRank's."""
        return self.inner.new_scratch()

    def initial_rounds(self, state: Any) -> int | None:
        """Return how many rounds the initial phase of this state took, None if it is still going on."""
        return self.inner.initial_rounds(state)
