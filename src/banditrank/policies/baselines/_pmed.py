"""PMED: the exploration that rules out all other models at the least regret."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_number
from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.policies._assumptions import Assumptions
from banditrank.policies._count_arrays import arrays_of, record_round
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import AVAILABLE, FREE, LENGTH, PINNED, Restriction, place_best
from banditrank.policies.baselines._base import RANK_ONE_CLICKS, BaselinePolicy
from banditrank.policies.baselines._components.pmed.plan import Plan, PMEDState, empty_plan, fill_queue
from banditrank.policies.baselines._components.pmed.program import init_program

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


@inlined
def _rank(
    state: PMEDState,
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i = user_type
    plan = state.plan
    if plan.n_queued[i] == 0:
        fill_queue(state, i, parameters[0], rng)
    plan.n_queued[i] -= 1
    last = plan.n_queued[i]
    chosen = int(rng.random() * (last + 1))  # random, so that a copy without scratch shows each equally often
    for k in range(ranking.size):
        ranking[k] = plan.queue[i, chosen, k]
        plan.queue[i, chosen, k] = plan.queue[i, last, k]


@inlined
def _observe(state: PMEDState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record_round(state, user_type, ranking, rewards)


@inlined
def _choose(
    state: PMEDState,
    restriction: Restriction,
    workspace: NDArray[np.int8],
    user_type: int,
    t: int,  # noqa: ARG001 - each copy counts its rounds
    parameters: Floats,
    rng: np.random.Generator,  # noqa: ARG001 - ``rank`` drew the ranking
    ranking: Indices,
) -> None:
    """Write the ranking of the queue if it is allowed.

    Otherwise keep its allowed cells that were displayed too little, and place the best candidates elsewhere.
    """
    i, pinned = user_type, restriction.pinned
    length = restriction.sizes[LENGTH]
    is_allowed = length == ranking.size
    for k in range(length):
        item = ranking[k]
        is_allowed &= pinned[k] == item if pinned[k] >= 0 else restriction.roles[item] == FREE
    if is_allowed:
        return
    enough = max(1.0, parameters[0] * math.sqrt(math.log(state.arrivals[i] + 1.0)))
    for k in range(length):
        item = ranking[k]
        workspace[k] = 0
        is_open = pinned[k] < 0 and restriction.roles[item] == FREE
        if is_open and state.displays[i, k, item] < enough:  # pinned until the others are placed
            workspace[k], pinned[k], restriction.roles[item] = 1, item, PINNED
    available = 0
    for index in range(restriction.sizes[AVAILABLE]):
        if restriction.roles[restriction.items[index]] == FREE:
            restriction.items[available] = restriction.items[index]
            available += 1
    restriction.sizes[AVAILABLE] = available
    _value_candidates(state, restriction, i)
    place_best(restriction, restriction.values, state.plan.positions[i], ranking)
    for k in range(length):
        if workspace[k] == 1:
            pinned[k] = -1


@internal
def _value_candidates(state: PMEDState, restriction: Restriction, user_type: int) -> None:
    """Write the estimates of the available items; before there are any, their clicks per display."""
    i, plan = user_type, state.plan
    for index in range(restriction.sizes[AVAILABLE]):
        j = restriction.items[index]
        clicks, displays = 1.0, 1.0
        for k in range(plan.positions.shape[1]):
            clicks += state.rewards[i, k, j]
            displays += state.displays[i, k, j]
        restriction.values[j] = plan.items[i, j] if plan.solve_at[i] > 0.0 else clicks / displays


@dataclass(frozen=True, kw_only=True)
class PMED(BaselinePolicy):
    """PMED: the best ranking by maximum likelihood, and others as often as ruling out other models requires.

    An item at a position is clicked with probability θ_j κ_k. The maximum-likelihood model determines the
    best ranking and a linear program: the cheapest displays, in multiples of ln t, that distinguish the model
    from every one in which that ranking is not optimal. Any consistent policy needs them asymptotically.
    Rankings displayed less often than required, and items displayed less than α√(ln t) times at a position,
    are shown before the best ranking is shown again.

    In the paper positions are sorted by decreasing κ. Here their order is unknown, so that models in which
    two positions are exchanged must be ruled out as well. The program is solved again whenever the rounds of
    a copy have grown by a tenth.

    Parameters
    ----------
    alpha
        α; the asymptotic guarantee holds for any positive number.
    treatment, utility
        What its regret is measured against.

    Raises
    ------
    InvalidInputError
        If α, the treatment or the utility is not valid.

    References
    ----------
    J. Komiyama, J. Honda and A. Takeda (2017), Position-based multiple-play bandit problem with unknown
    position bias. Advances in Neural Information Processing Systems 30.

    Examples
    --------
    >>> counts = Counts.from_arrays([[[900, 900], [900, 900]]], [[[600, 800], [50, 90]]], [1800])
    >>> PMED().rank(counts, 0, rng=np.random.default_rng(1))
    array([1, 0])
    """

    name: ClassVar[str] = "pmed"
    assumptions: ClassVar[Assumptions] = RANK_ONE_CLICKS
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe, _choose, ranks_first=True)
    has_candidates = True

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_number("alpha", self.alpha, 1e-9, 1e9))

    def new_scratch(self) -> dict[str, Plan]:
        """Return an empty scratch, which holds the plan."""
        return {}

    def init_state(self, counts: Counts, scratch: dict[str, Plan]) -> PMEDState:
        """Return the state for counts, with the plan of the scratch if it has their shape."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        program = init_program(m, k)
        plan = scratch.get("plan")
        if plan is None or plan.items.shape != (n, m) or plan.positions.shape != (n, k):
            plan = empty_plan(n, m, k, len(program.basis.costs))
            scratch["plan"] = plan
        return PMEDState(
            *(*arrays_of(counts), plan, program),
            *(np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp), np.zeros((k, m))),
            *(np.zeros(m, dtype=np.uintp), np.zeros(m), np.zeros(k, dtype=np.uintp)),
        )

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> NDArray[np.int8]:  # noqa: ARG002
        """Return a workspace for the cells of the queue's ranking, shape (K,)."""
        return np.zeros(n_positions, dtype=np.int8)

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return α of every round, shape (rounds, 1)."""
        return np.full((len(rounds), 1), self.alpha)
