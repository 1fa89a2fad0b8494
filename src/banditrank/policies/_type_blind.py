"""The paper's type-blind baseline, which does not distinguish user types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from banditrank.policies._assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies._base import Treatment, check_treatment
from banditrank.policies._paper_policy import PAPER_COEFFICIENTS
from banditrank.policies._ucb_rank import UCBRank
from banditrank.policies._wrapper import PolicyWrapper
from banditrank.policies.schedules import Schedule
from banditrank.utilities._utility import Utility, as_utility


@dataclass(frozen=True, init=False)
class TypeBlindUCB(PolicyWrapper):
    """UCBRank on counts that are pooled over user types.

    Its initial phase ends when every item was clicked at every position by a user of any type.

    Parameters
    ----------
    coefficient, schedule
        As for `UCBRank`.
    treatment, utility
        What its regret is measured against; its rankings do not depend on them.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid, or both a coefficient and a schedule are given.

    Examples
    --------
    >>> import numpy as np
    >>> from banditrank.counts._counts import Counts
    >>> counts = Counts.from_arrays([[[50], [9]], [[850], [1]]], [[[20], [3]], [[430], [0]]], [59, 851])
    >>> TypeBlindUCB(coefficient=0.0).rank(counts, 1, rng=np.random.default_rng(1))
    array([0])
    """

    name: ClassVar[str] = "type-blind-ucb"
    distinguishes_user_types = False
    has_candidates = True
    assumptions: ClassVar[Assumptions] = RANK_ONE_REWARDS

    policy: UCBRank
    treatment: Treatment
    utility: Utility

    def __init__(
        self,
        *,
        coefficient: float | None = None,
        schedule: Schedule | Callable[[int], float] | None = None,
        treatment: Treatment = "personalized",
        utility: Utility | str = "utilitarian",
    ) -> None:
        check_treatment(treatment)
        if coefficient is None and schedule is None:
            coefficient = PAPER_COEFFICIENTS[treatment]
        object.__setattr__(self, "policy", UCBRank(coefficient=coefficient, schedule=schedule))
        object.__setattr__(self, "treatment", treatment)
        object.__setattr__(self, "utility", as_utility(utility))

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        schedule = self.policy.schedule
        return {**super().describe(), "coefficient": schedule.coefficient, "schedule": schedule.name}

    def fingerprint(self) -> dict[str, Any]:
        """Return the description, and samples of the schedule and the utility."""
        return {**super().fingerprint(), "schedule_sample": self.policy.schedule.sample()}
