"""A kernel that is bound to a state, and called by address.

The compiled functions of a policy depend on the types of its state alone, so they are compiled once for
Python, for batches and for the simulation loop with every click model.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined, is_own, wrap_formula
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
        The bound kernel for compiled callers, valid as long as this object exists; None if the formulas are
        not part of this package: they are then called directly.
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
        self._kernel, self._rng, self._n_parameters = kernel, rng, n_parameters
        self.state = state
        self.ranking = ranking
        self.handle: KernelHandle | None = None
        if is_own(kernel.rank) and is_own(kernel.observe):
            self.handle = self._bind()

    def _bind(self) -> KernelHandle:
        ranking = self.ranking
        arguments = KernelArguments(
            self.state,
            np.zeros(self._n_parameters),
            ranking,
            np.zeros_like(ranking),
            np.zeros(ranking.size),
        )
        self._native = NativeArguments(arguments, self._rng)
        return KernelHandle(
            self._native.address,
            self._native.native_function(wrap_formula(_build_rank, self._kernel.rank)),
            self._native.native_function(wrap_formula(_build_observe, self._kernel.observe)),
            *(arguments.parameters, arguments.observed_ranking, arguments.observed_rewards),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebind, (self._kernel, self.state, self._rng, self.ranking, self._n_parameters)

    def rank(self, user_type: int, t: int, parameters: Floats) -> Indices:
        """Write the ranking of round t to `ranking`, shape (K,), and return it."""
        if self.handle is None:
            self._kernel.rank(self.state, user_type, t, parameters, self._rng, self.ranking)
        else:
            self.handle.parameters[:] = parameters
            call_native(self.handle.rank_function, self.handle.arguments, user_type, t)
        return self.ranking

    def rank_repeatedly(self, user_type: int, t: int, parameters: Floats, rankings: Indices) -> None:
        """Write independent rankings of round t, shape (any number, K)."""
        if self.handle is None:
            for ranking in rankings:
                ranking[:] = self.rank(user_type, t, parameters)
        else:
            self.handle.parameters[:] = parameters
            _rank_repeatedly(self.handle, user_type, t, self.ranking, rankings)

    def observe(self, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
        """Learn from the rewards of a ranking, both of shape (K,)."""
        if self.handle is None:
            self._kernel.observe(self.state, user_type, t, ranking, rewards)
        else:
            self.handle.observed_ranking[:] = ranking
            self.handle.observed_rewards[:] = rewards
            call_native(self.handle.observe_function, self.handle.arguments, user_type, t)


def _rebind(
    kernel: Kernel, state: Any, rng: np.random.Generator, ranking: Indices, n_parameters: int
) -> BoundKernel:
    """Return a copy with addresses of its own: of `copy.deepcopy`, or in another process."""
    return BoundKernel(kernel, state, rng, ranking=ranking, n_parameters=n_parameters)


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
