"""CascadeTS: Thompson sampling of items in the cascade model."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer, check_number
from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of
from banditrank.policies._kernel import Kernel
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._base import OrderedBaselinePolicy
from banditrank.policies.baselines._components.cascade_counts import record_cascade
from banditrank.policies.baselines._components.item_remapping import remap_items

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class CascadeTSState(NamedTuple):
    """Counts, and the posterior of each item in the cascade model."""

    displays: Floats  # (copies, K, M)
    rewards: Floats  # (copies, K, M)
    arrivals: Floats  # (copies,)
    positions: Indices  # (copies, K) in the order of examination
    n_visible: int  # positions that users without a click have examined
    looks: Floats  # (copies, M) of the prior, and examinations
    clicks: Floats  # (copies, M) of the prior, and first clicks
    leaders: Indices  # (K,) workspace
    sample: Floats  # (M,) workspace


@inlined
def _rank(
    state: CascadeTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - the posterior depends on observations alone
    parameters: Floats,  # noqa: ARG001 - none
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    for j in range(state.sample.size):
        clicks = state.clicks[user_type, j]
        state.sample[j] = rng.beta(clicks, state.looks[user_type, j] - clicks)
    top_k(state.sample, state.leaders)
    assign_in_order(state.leaders, state.positions[user_type], ranking)


@inlined
def _observe(
    state: CascadeTSState,
    user_type: int,
    t: int,  # noqa: ARG001 - as above
    ranking: Indices,
    rewards: Floats,
) -> None:
    record_cascade(state, user_type, ranking, rewards, state.n_visible)


@dataclass(frozen=True, kw_only=True)
class CascadeTS(OrderedBaselinePolicy):
    """CascadeTS: the items with the largest posterior samples, in the order of examination.

    In the cascade model users examine one position after another and stop at their first click: items above
    it were examined and not clicked, items below it were not examined. Each item has a Beta posterior of its
    first clicks and of its examinations without a click.

    Parameters
    ----------
    prior
        Clicks and misses that the prior of each item is worth: (1, 1) is uniform.
    n_visible
        Number of positions that users without a click have examined, such as those of a carousel that are
        visible without a swipe; all if None, as in the cascade model.
    order
        Positions in the order of examination, a row for each copy, or one for all.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the prior, the number of positions, the order, the treatment or the utility is not valid.

    References
    ----------
    Z. Zhong, W. C. Cheung and V. Y. F. Tan (2021), Thompson sampling algorithms for cascading bandits.
    Journal of Machine Learning Research 22.

    W. Bendada, G. Salha and T. Bontempelli (2020), Carousel personalization in music streaming apps with
    contextual bandits. ACM Conference on Recommender Systems 14. Their segment-wise policy "TS-seg-
    pessimistic" is ``CascadeTS(prior=(1, 99), n_visible=3)``.

    Examples
    --------
    >>> from banditrank import kdd2012, simulate
    >>> simulate(CascadeTS(), kdd2012(), horizon=100, replications=2).final_regret.shape
    (2,)
    """

    name: ClassVar[str] = "cascade-ts"
    assumptions: ClassVar[Assumptions] = Assumptions(positions="order", click_models=("cascade",))
    own_statistics: ClassVar[str | None] = "first clicks and examinations without a click of each item"
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    prior: tuple[float, float] = (1.0, 1.0)
    n_visible: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            clicks, misses = self.prior
        except (TypeError, ValueError):
            rule = "must be a number of clicks and a number of misses"
            raise InvalidInputError("prior", rule, self.prior) from None
        prior = tuple(check_number("prior", value, 1e-6, 1e9) for value in (clicks, misses))
        object.__setattr__(self, "prior", prior)
        if self.n_visible is not None:
            object.__setattr__(self, "n_visible", check_integer("n_visible", self.n_visible, 1))

    def init_state(self, counts: Counts, scratch: Any) -> CascadeTSState:  # noqa: ARG002 - keeps none
        """Return a state without observations: counts do not show what was above a click."""
        shape = (counts.n_user_types, counts.n_items)
        return CascadeTSState(
            *arrays_of(counts),
            self.ordered_positions(counts),
            min(self.n_visible or counts.n_positions, counts.n_positions),
            np.full(shape, sum(self.prior)),
            np.full(shape, self.prior[0]),
            np.zeros(counts.n_positions, dtype=np.uintp),
            np.zeros(counts.n_items),
        )

    def update_items(
        self, state: CascadeTSState, counts: Counts, previous: NDArray[np.intp]
    ) -> CascadeTSState:
        """Return the state for other items, with the observations of remaining ones."""
        return self.init_state(counts, None)._replace(
            looks=remap_items(state.looks, previous, sum(self.prior)),
            clicks=remap_items(state.clicks, previous, self.prior[0]),
        )
