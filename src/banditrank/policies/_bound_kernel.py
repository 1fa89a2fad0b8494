"""A kernel that is bound to a state, and called by address.

The compiled functions of a policy depend on the types of its state alone, so they are compiled once for
Python, for batches and for the simulation loop with every click model.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, wrap_formula
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.policies._kernel import Kernel

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class KernelArguments(NamedTuple):
    """Arguments of a kernel's functions that stay the same from round to round, as objects or as buffers."""

    state: Any
    parameters: Floats  # (P,) of the next ranking
    ranking: Indices  # (K,) the last ranking
    observed_ranking: Indices  # (K,)
    observed_rewards: Floats  # (K,)


class KernelHandle(NamedTuple):
    """A bound kernel as compiled code sees it, whatever its policy."""

    arguments: int  # address of the `KernelArguments`
    rank_function: int  # addresses of native functions
    observe_function: int
    parameters: Floats
    observed_ranking: Indices
    observed_rewards: Floats


class BoundKernel:
    """A kernel with a state and a generator. Not thread-safe.

    Parameters
    ----------
    kernel
        Formulas of the policy.
    state
        State of the policy. Its arrays are borrowed and updated.
    rng
        Generator of the policy.
    ranking
        Array to write rankings to, shape (K,).
    n_parameters
        Number of parameters of a round.

    Attributes
    ----------
    state, ranking
        As passed.
    handle
        The bound kernel for compiled callers. It is valid as long as this object exists.
    """

    def __init__(
        self,
        kernel: Kernel,
        state: Any,
        rng: np.random.Generator,
        *,
        ranking: Indices,
        n_parameters: int,
    ) -> None:
        arguments = KernelArguments(
            state, np.zeros(n_parameters), ranking, np.zeros_like(ranking), np.zeros(ranking.size)
        )
        self._native = NativeArguments(arguments, rng)
        self.state = state
        self.ranking = ranking
        self.handle = KernelHandle(
            self._native.address,
            self._native.native_function(wrap_formula(_build_rank, kernel.rank)),
            self._native.native_function(wrap_formula(_build_observe, kernel.observe)),
            *(arguments.parameters, arguments.observed_ranking, arguments.observed_rewards),
        )

    def rank(self, user_type: int, t: int, parameters: Floats) -> Indices:
        """Write the ranking of round t to `ranking`, shape (K,), and return it."""
        self.handle.parameters[:] = parameters
        call_native(self.handle.rank_function, self.handle.arguments, user_type, t)
        return self.ranking

    def rank_repeatedly(self, user_type: int, t: int, parameters: Floats, rankings: Indices) -> None:
        """Write independent rankings of round t, shape (any number, K)."""
        self.handle.parameters[:] = parameters
        _rank_repeatedly(self.handle, user_type, t, self.ranking, rankings)

    def observe(self, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
        """Learn from the rewards of a ranking, both of shape (K,)."""
        self.handle.observed_ranking[:] = ranking
        self.handle.observed_rewards[:] = rewards
        call_native(self.handle.observe_function, self.handle.arguments, user_type, t)


def _build_rank(rank: Callable[..., None]) -> Callable[..., None]:
    def native_rank(pointer: Any, user_type: int, t: int) -> None:
        arguments, rng = load_arguments(pointer)
        rank(arguments.state, user_type, t, arguments.parameters, rng, arguments.ranking)

    return native_rank


def _build_observe(observe: Callable[..., None]) -> Callable[..., None]:
    def native_observe(pointer: Any, user_type: int, t: int) -> None:
        arguments = load_arguments(pointer)[0]
        observe(arguments.state, user_type, t, arguments.observed_ranking, arguments.observed_rewards)

    return native_observe


@compiled
def _rank_repeatedly(
    handle: KernelHandle, user_type: int, t: int, ranking: Indices, rankings: Indices
) -> None:
    for row in range(rankings.shape[0]):
        call_native(handle.rank_function, handle.arguments, user_type, t)
        for k in range(ranking.size):
            rankings[row, k] = ranking[k]


@inlined
def rank_by_handle(
    handle: KernelHandle,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,  # noqa: ARG001 - bound, as the next one
    ranking: Indices,  # noqa: ARG001
) -> None:
    """Write a ranking: ``rank`` of a `Kernel` whose state is a handle."""
    for index in range(parameters.size):
        handle.parameters[index] = parameters[index]
    call_native(handle.rank_function, handle.arguments, user_type, t)


@inlined
def observe_by_handle(
    handle: KernelHandle, user_type: int, t: int, ranking: Indices, rewards: Floats
) -> None:
    """Learn from rewards: ``observe`` of a `Kernel` whose state is a handle."""
    for k in range(ranking.size):
        handle.observed_ranking[k] = ranking[k]
        handle.observed_rewards[k] = rewards[k]
    call_native(handle.observe_function, handle.arguments, user_type, t)
