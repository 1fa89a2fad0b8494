"""CascadeKL-UCB: KL-UCB indices of items in the cascade model."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import random_argmax
from banditrank.policies.baselines._base import OrderedBaselinePolicy
from banditrank.policies.baselines._components.cascade_counts import record_cascade
from banditrank.policies.baselines._components.item_remapping import remap_items
from banditrank.policies.baselines._components.kl_ucb import exploration_level, kl_ucb

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CascadeState(NamedTuple):
    """Counts, and the observations of the cascade model."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) in the order of examination
    looks: Floats  # (copies, M) displays at the first click or above it
    clicks: Floats  # (copies, M) first clicks
    bounds: Floats  # (M,) workspace


@inlined
def _rank(
    state: CascadeState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i, bounds = user_type, state.bounds
    level = exploration_level(state.arrivals[i] + 1.0)
    for j in range(bounds.size):
        looks = state.looks[i, j]
        bounds[j] = kl_ucb(state.clicks[i, j] / looks, looks, level) if looks > 0.0 else np.inf
    for rank in range(ranking.size):
        best = random_argmax(bounds, rng)
        ranking[state.positions[i, rank]] = best
        bounds[best] = -1.0


@inlined
def _observe(state: CascadeState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record_cascade(state, user_type, ranking, rewards, ranking.size)


@dataclass(frozen=True, kw_only=True)
class CascadeKLUCB(OrderedBaselinePolicy):
    """CascadeKL-UCB: the items with the largest KL-UCB, in the order of examination.

    In the cascade model users examine one position after another and stop at their first click: items above
    it were examined and not clicked, items below it were not examined. The index of an item is sup {q : looks
    · d(clicks / looks, q) ≤ ln t + 3 ln ln t}, d being the Bernoulli divergence and t the round of the copy.
    The paper starts with one observation of every item; here items without an observation go first.

    Parameters
    ----------
    order
        Positions in the order of examination, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the order, the treatment or the utility is not valid.

    References
    ----------
    B. Kveton, C. Szepesvári, Z. Wen and A. Ashkan (2015), Cascading bandits: learning to rank in the cascade
    model. International Conference on Machine Learning 32.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> simulate(CascadeKLUCB(), kdd2012(), horizon=100, replications=2).final_regret.shape
    (2,)
    """

    name: ClassVar[str] = "cascade-kl-ucb"
    assumptions: ClassVar[Assumptions] = Assumptions(positions="order", click_models=("cascade",))
    own_statistics: ClassVar[str | None] = "looks and first clicks of each item"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    def init_state(self, counts: Counts, scratch: Any) -> CascadeState:  # noqa: ARG002 - keeps none
        """Return a state without observations: counts do not show what was above a click."""
        shape = (counts.n_user_types, counts.n_items)
        return CascadeState(
            *arrays_of(counts),
            self.ordered_positions(counts),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(counts.n_items),
        )

    def update_items(self, state: CascadeState, counts: Counts, previous: NDArray[np.intp]) -> CascadeState:
        """Return the state for other items, with the observations of remaining ones."""
        fresh = self.init_state(counts, None)
        return fresh._replace(
            looks=remap_items(state.looks, previous), clicks=remap_items(state.clicks, previous)
        )
