"""Compiled policies of users: exceptions are raised, and nothing of them stays in the cache."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from banditrank import Counts, InvalidInputError, kdd2012, simulate
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


def test_compiled_policies_with_other_parameters_are_not_resumed(tmp_path: Path) -> None:
    """Finding 7: a saved run of a compiled policy resumes with its own parameters only."""
    simulate(FirstItems(100), kdd2012(), 100, 1, 0, save_to=tmp_path)
    assert len(simulate(FirstItems(100), kdd2012(), 100, 2, 0, save_to=tmp_path).replications) == 2
    with pytest.raises(InvalidInputError, match=r"whose fingerprint differs \(limit is 200 and was 100\)"):
        simulate(FirstItems(200), kdd2012(), 100, 2, 0, save_to=tmp_path)


def test_types_and_formulas_of_users_are_not_in_the_cache() -> None:
    """Finding 7: machine code of users is not cached: it may use values of any file, which may change."""
    FirstItems(9).start(kdd2012(), rng=1).rank(0)
    simulate(FirstItems(100), kdd2012(), 100, 1, 0)
    cached = [*cache_directory().rglob("*.nbi")]
    assert cached
    assert not [path for path in cached if "test_custom_compiled_policy" in str(path)]
    assert not [path for path in cached if b"FirstItemsState" in path.read_bytes()]


@inlined
def shift(k: int) -> int:
    return k + SHIFT


SHIFT = 0


@inlined
def rank_shifted_items(
    state: FirstItemsState,  # noqa: ARG001
    user_type: int,  # noqa: ARG001
    t: int,  # noqa: ARG001
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    for k in range(ranking.size):
        ranking[k] = shift(k)


class ShiftedItems(FirstItems):
    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002
        return Kernel(rank_shifted_items, learn_nothing)


def test_values_that_change_after_compilation_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 7: machine code keeps the constants that it was compiled with, so that others are refused."""
    assert ShiftedItems(9).start(kdd2012(), rng=1).rank(0).tolist() == [0, 1]
    monkeypatch.setattr(sys.modules[__name__], "SHIFT", 2)
    message = "^formula must be defined again, because values .* have changed, got 'rank_shifted_items'"
    with pytest.raises(InvalidInputError, match=message):
        simulate(ShiftedItems(9), kdd2012(), 100, 1, 0)
    with pytest.raises(InvalidInputError, match=message):
        ShiftedItems(9).start(kdd2012(), rng=1)
