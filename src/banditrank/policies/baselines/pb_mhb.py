"""PB-MHB: Thompson sampling by a random walk over items and positions at once."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number, check_integer
from banditrank.compilation import inlined, internal
from banditrank.policies.assumptions import Assumptions
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import RANK_ONE_CLICKS, BaselinePolicy
from banditrank.policies.baselines.components.random_walk import sweep
from banditrank.policies.sorting import assign_in_order, top_k
from banditrank.policies.count_arrays import record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

WARM_UP_SCALES = 12  # widths 1, 1/2, 1/4, …: one of them suits any posterior
WARM_UP_ROUNDS = 12  # over all these widths


class PosteriorSample(NamedTuple):
    """Each copy's place in its walk: what is lost with it, a warm-up makes good."""

    items: Floats  # (N, M) θ
    positions: Floats  # (N, K) κ
    drawn: NDArray[np.int64]  # (N,) 0 before there is any


class PBMHBState(NamedTuple):
    """The counts and the sample."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    sample: PosteriorSample
    order: Indices  # (K,) room: positions by decreasing κ
    leaders: Indices  # (K,) room: items by decreasing θ


@inlined
def _rank(
    state: PBMHBState,
    user_type: int,
    t: int,  # noqa: ARG001 - a copy counts its own rounds
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    sample = state.sample
    if sample.drawn[i] == 0:
        _init_sample(state, i, rng)
    width = parameters[0] / math.sqrt(state.arrivals[i] + 1.0)
    for _ in range(int(parameters[1])):
        sweep(state.displays, state.rewards, sample.items, sample.positions, i, width, rng)
    top_k(sample.items[i], state.leaders)
    top_k(sample.positions[i], state.order)
    assign_in_order(state.leaders, state.order, ranking)


@internal
def _init_sample(state: PBMHBState, user_type: int, rng: np.random.Generator) -> None:
    """Draw from the prior and, if something is known already, walk from there to where the posterior is."""
    i = user_type
    sample = state.sample
    for j in range(sample.items.shape[1]):
        sample.items[i, j] = rng.random()
    for k in range(sample.positions.shape[1]):
        sample.positions[i, k] = rng.random()
    sample.drawn[i] = 1
    if state.arrivals[i] > 0.0:
        for _ in range(WARM_UP_ROUNDS):
            width = 1.0
            for _ in range(WARM_UP_SCALES):
                sweep(state.displays, state.rewards, sample.items, sample.positions, i, width, rng)
                width *= 0.5


@inlined
def _observe(state: PBMHBState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record(state, user_type, ranking, rewards)


@dataclass(frozen=True, kw_only=True)
class PBMHB(BaselinePolicy):
    """Show the best ranking of a model drawn from the posterior by a few steps of Metropolis–Hastings.

    The model: an item shown at a position is clicked with probability θ_j κ_k, both uniform on [0, 1] before
    anything is seen. Each round every θ_j and then every κ_k is offered a normal step of width c/√t, kept
    within [0, 1]; the walk goes on from where the last round left it. The item of the k-th largest θ goes to
    the position of the k-th largest κ.

    In the paper κ_1 = 1, the first position being taken for the one looked at most. Here which one is need
    not be known: all of κ is drawn, and only ratios of κ are ever learned, which is all that rankings need.

    Parameters
    ----------
    width
        c. At the paper's 1,000 steps are nearly uniform for the first million rounds.
    steps
        Sweeps over all coordinates a round, m in the paper.
    treatment, utility
        What its regret is measured against.

    References
    ----------
    C.-S. Gauthier, R. Gaudel and E. Fromont (2021), Bandit algorithm for both unknown best position and best
    item display on web pages. International Symposium on Intelligent Data Analysis 19.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[90, 90], [90, 90]]], [[[60, 80], [5, 9]]], [180])
    >>> PBMHB().rank(counts, 0, rng=np.random.default_rng(1))
    array([1, 0])
    """

    name: ClassVar[str] = "pb-mhb"
    assumptions: ClassVar[Assumptions] = RANK_ONE_CLICKS
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    width: float = 1000.0
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", check_number("width", self.width, 1e-9, 1e9))
        check_integer("steps", self.steps, 1)

    def new_scratch(self) -> dict[str, PosteriorSample]:
        """Return room for the sample."""
        return {}

    def start(self, counts: Counts, scratch: dict[str, PosteriorSample]) -> PBMHBState:
        """Return the state for counts, with the sample that the scratch holds if it fits them."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        sample = scratch.get("sample")
        if sample is None or sample.items.shape != (n, m) or sample.positions.shape != (n, k):
            sample = PosteriorSample(np.zeros((n, m)), np.zeros((n, k)), np.zeros(n, dtype=np.int64))
            scratch["sample"] = sample
        return PBMHBState(
            *arrays_of(counts),
            sample,
            np.zeros(k, dtype=np.uintp),
            np.zeros(k, dtype=np.uintp),
        )

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return c and m for every round."""
        return np.tile([self.width, float(self.steps)], (len(rounds), 1))
