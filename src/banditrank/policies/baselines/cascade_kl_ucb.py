"""CascadeKL-UCB: optimistic about items, for users who stop at the first that they like."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import inlined
from banditrank.policies.assumptions import Assumptions
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import OrderedBaselinePolicy
from banditrank.policies.baselines.components.item_remapping import remap_items
from banditrank.policies.baselines.components.kl_ucb import exploration_level, kl_ucb
from banditrank.policies.sorting import largest
from banditrank.policies.count_arrays import record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CascadeState(NamedTuple):
    """The counts, and what a cascade reads from the first click."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) in the order in which they are looked at
    looks: Floats  # (copies, M) displays at the first click or above it
    clicks: Floats  # (copies, M) first clicks
    bounds: Floats  # (M,) room


@inlined
def _rank(
    state: CascadeState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy has its own clock
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
        best = largest(bounds, rng)
        ranking[state.positions[i, rank]] = best
        bounds[best] = -1.0


@inlined
def _observe(state: CascadeState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record(state, user_type, ranking, rewards)
    for rank in range(ranking.size):
        position = state.positions[user_type, rank]
        state.looks[user_type, ranking[position]] += 1.0
        if rewards[position] > 0.0:
            state.clicks[user_type, ranking[position]] += 1.0
            break  # whether anything below was looked at, nobody knows


@dataclass(frozen=True, kw_only=True)
class CascadeKLUCB(OrderedBaselinePolicy):
    """Show the items of the largest KL-UCB, the largest where users look first.

    In a cascade users look at one position after the other and stop at their first click: what stands above
    it was looked at and not liked, what stands below it was not looked at. The index of an item is
    sup {q : looks · d(clicks / looks, q) ≤ ln t + 3 ln ln t}, d being the divergence of Bernoulli means and t
    the round of the copy. The paper starts with one look at every item; here an item without a look goes
    first.

    Parameters
    ----------
    order
        The order in which positions are looked at, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

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

    def start(self, counts: Counts, scratch: Any) -> CascadeState:  # noqa: ARG002 - nothing is remembered
        """Return a state without looks: counts do not tell what stood above a click."""
        shape = (counts.n_user_types, counts.n_items)
        return CascadeState(
            *arrays_of(counts),
            self.ordered_positions(counts),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(counts.n_items),
        )

    def update_items(self, state: CascadeState, counts: Counts, previous: NDArray[np.intp]) -> CascadeState:
        """Return the state for other items, with the looks and clicks of those that stay."""
        fresh = self.start(counts, None)
        return fresh._replace(looks=remap_items(state.looks, previous), clicks=remap_items(state.clicks, previous))
