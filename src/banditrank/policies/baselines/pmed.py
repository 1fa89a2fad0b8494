"""PMED: as much exploration as it takes to rule out all other models, and no more."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from banditrank.checks import check_number
from banditrank.compilation import inlined
from banditrank.policies.assumptions import Assumptions
from banditrank.policies.base import Kernel
from banditrank.policies.baselines.base import RANK_ONE_CLICKS, BaselinePolicy
from banditrank.policies.baselines.components.pmed.plan import Plan, PMEDState, empty_plan, fill_queue
from banditrank.policies.baselines.components.pmed.program import init_program
from banditrank.policies.count_arrays import record, arrays_of
from banditrank.counts.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


@inlined
def _rank(
    state: PMEDState,
    user_type: int,
    t: int,  # noqa: ARG001 - a copy counts its own rounds
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
    chosen = int(rng.random() * (last + 1))  # in any order: a copy without memory then shows each as often
    for k in range(ranking.size):
        ranking[k] = plan.queue[i, chosen, k]
        plan.queue[i, chosen, k] = plan.queue[i, last, k]


@inlined
def _observe(state: PMEDState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:  # noqa: ARG001
    record(state, user_type, ranking, rewards)


@dataclass(frozen=True, kw_only=True)
class PMED(BaselinePolicy):
    """Show the best ranking by likelihood, and others only as often as it takes to rule out other models.

    The model: an item shown at a position is clicked with probability θ_j κ_k. From its likelihood follow the
    best ranking and a program: the cheapest displays, in multiples of ln t, that tell the believed model from
    every one in which that ranking is not the best. They are the least that any good policy spends in the
    long run. What was shown less often than so, or an item less than α√(ln t) times at some position, is
    shown before the best ranking is shown again.

    In the paper positions are numbered by decreasing κ. Here their order need not be known, so models in
    which two positions change places must be ruled out as well. The program is solved again whenever a copy
    has seen a tenth more rounds.

    Parameters
    ----------
    alpha
        α; any positive number will do in the long run.
    treatment, utility
        What its regret is measured against.

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
    compiled_kernel: ClassVar[Kernel] = Kernel(_rank, _observe)

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_number("alpha", self.alpha, 1e-9, 1e9))

    def new_scratch(self) -> dict[str, Plan]:
        """Return room for the plan."""
        return {}

    def start(self, counts: Counts, scratch: dict[str, Plan]) -> PMEDState:
        """Return the state for counts, with the plan that the scratch holds if it fits them."""
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

    def parameters(self, rounds: NDArray[np.int64]) -> Floats:
        """Return α for every round."""
        return np.full((len(rounds), 1), self.alpha)
