"""Compiled policies of users: exceptions are raised, and nothing of them stays in the cache."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import Counts, kdd2012, simulate
from banditrank._compilation import cache_directory, inlined
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._kernel import Kernel


class FirstItemsState(NamedTuple):
    """Rounds until the policy fails."""

    limit: int


@inlined
def rank_first_items(
    state: FirstItemsState,
    user_type: int,  # noqa: ARG001
    t: int,
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    if t > state.limit:
        raise ValueError("the policy failed")
    for k in range(ranking.size):
        ranking[k] = k


@inlined
def learn_nothing(state: Any, user_type: int, t: int, ranking: Any, rewards: Any) -> None:
    pass


class FirstItems(CompiledPolicy):
    """Shows the first items, and fails after some rounds."""

    name = "first-items"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002
        return Kernel(rank_first_items, learn_nothing)

    def init_state(self, counts: Counts, scratch: Any) -> FirstItemsState:  # noqa: ARG002
        return FirstItemsState(self.limit)


def test_exceptions_of_compiled_policies_are_raised() -> None:
    assert simulate(FirstItems(100), kdd2012(), 100, 1, 0).final_regret.shape == (1,)
    with pytest.raises(ValueError, match="the policy failed"):
        simulate(FirstItems(50), kdd2012(), 100, 1, 0, workers=1)
    learner = FirstItems(1).start(kdd2012(), rng=1)
    learner.update(0, learner.rank(0))
    with pytest.raises(ValueError, match="the policy failed"):
        learner.rank(0)


def test_types_and_formulas_of_users_are_not_in_shared_files_of_the_cache() -> None:
    FirstItems(9).start(kdd2012(), rng=1).rank(0)
    simulate(FirstItems(100), kdd2012(), 100, 1, 0)
    shared = [path for path in cache_directory().rglob("*.nbi") if "test_custom" not in path.name]
    assert shared
    assert not [path for path in shared if b"FirstItemsState" in path.read_bytes()]
