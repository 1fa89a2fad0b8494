"""PB-MHB: Thompson sampling by Metropolis–Hastings steps on items and positions jointly."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer, check_number
from banditrank._compilation import compiled, inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import Restriction, place_best
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._base import RANK_ONE_CLICKS, BaselinePolicy

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

UNIFORM_PROPOSAL_WIDTH = 0.4  # above, uniform candidates are accepted more often than normal ones fall inside


@compiled
def sweep(
    displays: Floats,
    rewards: Floats,
    items: Floats,
    positions: Floats,
    user_type: int,
    width: float,
    rng: np.random.Generator,
) -> None:
    """Make a Metropolis–Hastings step for every θ, then for every κ, which leaves the posterior invariant.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M).
    items, positions
        θ and κ of the current sample, shapes (N, M) and (N, K).
    user_type
        Copy to update.
    width
        Standard deviation of the proposals.
    rng
        Generator.
    """
    i = user_type
    for j in range(items.shape[1]):
        _step(items[i], j, positions[i], displays[i, :, j], rewards[i, :, j], width, rng)
    for k in range(positions.shape[1]):
        _step(positions[i], k, items[i], displays[i, k], rewards[i, k], width, rng)


@internal
def _step(
    values: Floats,
    index: int,
    partners: Floats,
    displays: Floats,
    rewards: Floats,
    width: float,
    rng: np.random.Generator,
) -> None:
    """Make a step for one factor, given its partners and the displays and rewards with each.

    A proposal is accepted with probability min(1, posterior ratio × proposal ratio).
    """
    old = values[index]
    new = propose(old, width, rng)
    gain = math.log(proposal_mass(old, width) / proposal_mass(new, width))
    clicks = 0.0
    for other in range(partners.size):
        clicks += rewards[other]
        misses = displays[other] - rewards[other]
        if misses > 0.0:
            gain += misses * math.log((1.0 - partners[other] * new) / (1.0 - partners[other] * old))
    if math.log(rng.random()) < gain + clicks * math.log(new / old):
        values[index] = new


@compiled
def propose(old: float, width: float, rng: np.random.Generator) -> float:
    """Return a proposal from a normal distribution truncated to (0, 1)."""
    while True:
        if width > UNIFORM_PROPOSAL_WIDTH:  # the same distribution, without rejecting nearly all wide steps
            new = rng.random()
            distance = (new - old) / width
            inside = new > 0.0 and rng.random() < math.exp(-0.5 * distance * distance)
        else:
            new = old + width * rng.standard_normal()
            inside = 0.0 < new < 1.0
        if inside:
            return new


@compiled
def proposal_mass(old: float, width: float) -> float:
    """Return the probability that an untruncated normal step stays in (0, 1): ΔΦ_σ.

    Examples
    --------
    >>> round(proposal_mass(0.5, 0.3), 4)  # 2 Φ(5/3) − 1
    0.9044
    """
    scale = math.sqrt(0.5) / width
    return 0.5 * (math.erf((1.0 - old) * scale) + math.erf(old * scale))


WARM_UP_SCALES = 12  # widths 1, 1/2, 1/4, …: one of them suits any posterior
WARM_UP_ROUNDS = 12  # sweeps over all these widths


class PosteriorSample(NamedTuple):
    """The current sample of each copy. Losing it costs a warm-up."""

    items: Floats  # (N, M) θ
    positions: Floats  # (N, K) κ
    drawn: NDArray[np.int64]  # (N,) 0 if there is none yet


class PBMHBState(NamedTuple):
    """Counts and sample."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    sample: PosteriorSample
    order: Indices  # (K,) workspace: positions by decreasing κ
    leaders: Indices  # (K,) workspace: items by decreasing θ


@inlined
def _rank(
    state: PBMHBState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
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
    """Draw a sample from the prior, and warm it up if there are counts."""
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
    record_round(state, user_type, ranking, rewards)


@inlined
def _choose(
    state: PBMHBState,
    restriction: Restriction,
    workspace: None,  # noqa: ARG001 - none
    user_type: int,
    t: int,  # noqa: ARG001
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001 - ``rank`` drew the sample
    ranking: Indices,
) -> None:
    sample = state.sample
    place_best(restriction, sample.items[user_type], sample.positions[user_type], ranking)


@dataclass(frozen=True, kw_only=True)
class PBMHB(BaselinePolicy):
    """PB-MHB: the best ranking for a posterior sample by a few Metropolis–Hastings steps.

    An item at a position is clicked with probability θ_j κ_k, with uniform priors on [0, 1]. Each round
    proposes a normal step of width c/√t, truncated to [0, 1], for every θ_j and then every κ_k, starting from
    the sample of the last round. The item of the k-th largest θ goes to the position of the k-th largest κ.

    In the paper κ_1 = 1: the first position is assumed to have the highest examination. Here all of κ is
    sampled, as the best position is unknown; only ratios of κ are identifiable, which is all that rankings
    need.

    Parameters
    ----------
    width
        c. At the paper's 1,000, proposals are nearly uniform for the first million rounds.
    steps
        Sweeps over all factors per round, m in the paper.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If the width or the number of steps, the treatment or the utility is not valid.

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
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe, _choose, ranks_first=True)
    has_candidates = True

    width: float = 1000.0
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", check_number("width", self.width, 1e-9, 1e9))
        check_integer("steps", self.steps, 1)

    def new_scratch(self) -> dict[str, PosteriorSample]:
        """Return an empty scratch, which holds the sample."""
        return {}

    def init_state(self, counts: Counts, scratch: dict[str, PosteriorSample]) -> PBMHBState:
        """Return the state for counts, with the sample of the scratch if it has their shape."""
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
        """Return c and m of every round, shape (rounds, 2)."""
        return np.tile([self.width, float(self.steps)], (len(rounds), 1))
