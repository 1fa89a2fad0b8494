"""Uniformly random rankings, the lower end of every comparison."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._base import (
    CompiledPolicy,
    Treatment,
    check_treatment,
    check_utility,
    observe_nothing,
)
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import Restriction, place_at_random
from banditrank.solvers._enumeration import draw_uniform_ranking
from banditrank.utilities._utility import UTILITARIAN, Utility


class UniformState(NamedTuple):
    """Workspace of the shuffle."""

    items: NDArray[np.intp]  # (M,)


@inlined
def _rank(
    state: UniformState,
    user_type: int,  # noqa: ARG001 - all users get random rankings
    t: int,  # noqa: ARG001
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    draw_uniform_ranking(rng, state.items, ranking)


@inlined
def _choose(
    state: UniformState,  # noqa: ARG001 - independent of it
    restriction: Restriction,
    workspace: None,  # noqa: ARG001
    user_type: int,  # noqa: ARG001
    t: int,  # noqa: ARG001
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    place_at_random(restriction, rng, ranking)


@dataclass(frozen=True, kw_only=True)
class UniformRandom(CompiledPolicy):
    """UniformRandom: a ranking drawn uniformly, independent of the counts.

    Parameters
    ----------
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    UnknownNameError
        If the treatment or the utility is unknown.

    Examples
    --------
    >>> counts = Counts.empty(n_user_types=1, n_items=5, n_positions=2)
    >>> UniformRandom().rank(counts, 0, rng=np.random.default_rng(2))
    array([1, 2])
    """

    name: ClassVar[str] = "random"
    assumptions: ClassVar[Assumptions] = Assumptions(
        allows_graded_rewards=True, is_utilitarian_only=False, is_stationary=False
    )
    has_candidates = True

    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN

    def __post_init__(self) -> None:
        check_treatment(self.treatment)
        object.__setattr__(self, "utility", check_utility(self.utility, self.treatment))

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the compiled functions."""
        return Kernel(_rank, observe_nothing, _choose)

    def init_state(self, counts: Counts, scratch: Any) -> UniformState:  # noqa: ARG002 - stateless
        """Return the workspace of the shuffle."""
        return UniformState(np.zeros(counts.n_items, dtype=np.intp))
