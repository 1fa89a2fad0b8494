"""Kernels inside the state of another kernel, which calls them by address: policies of policies."""

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, is_own
from banditrank._native_calls import call_native, store_generator, stored_values
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._bound_kernel import BoundKernel, KernelArguments
from banditrank.policies._kernel import state_note

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class NestedKernel(NamedTuple):
    """The kernel of a policy with its state, as compiled code sees it, whatever the policy.

    It has the machine code of the policy itself, and uses the generator of its caller.
    """

    memory: NDArray[np.uint64]  # the `KernelArguments`
    generator_slot: int
    rank_function: int  # addresses of native functions
    observe_function: int
    parameters: Floats  # (P,)
    ranking: Indices  # (K,) the last ranking
    observed_ranking: Indices  # (K,)
    observed_rewards: Floats  # (K,)
    note: NDArray[np.int64]  # (L,) that of the state

    @property
    def state(self) -> Any:
        """The state of the policy."""
        arguments: KernelArguments = stored_values(self.memory)[0]
        return arguments.state

    def __reduce__(self) -> NoReturn:
        raise TypeError("a nested kernel cannot be copied: it contains addresses")


def check_nestable(field: str, policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy whose kernel can be nested.

    Raises
    ------
    InvalidInputError
        If it is not a `CompiledPolicy`, or has functions that are not part of this package.
    """
    if not isinstance(policy, CompiledPolicy):
        raise InvalidInputError(field, "must be a CompiledPolicy (make_policy returns one)", policy)
    kernel = policy.kernel(n_items=2, n_positions=1)
    if not (is_own(kernel.rank) and is_own(kernel.observe)):
        raise InvalidInputError(field, "must be a policy of banditrank", policy.name)
    return policy


def nest_state(policy: CompiledPolicy, counts: Counts, state: Any) -> NestedKernel:
    """Return the kernel of a policy with a state for counts, whose arrays are borrowed."""
    bound = BoundKernel(
        policy.kernel(n_items=counts.n_items, n_positions=counts.n_positions),
        state,
        np.random.default_rng(0),  # never used: the caller stores its own
        ranking=np.zeros(counts.n_positions, dtype=np.uintp),
        n_parameters=policy.n_parameters,
    )
    native, handle = bound.native_arguments, bound.handle
    if native is None or handle is None:
        raise InvalidInputError("policy", "must be a policy of banditrank", policy.name)
    return NestedKernel(
        native.memory,
        native.generator_slot,
        handle.rank_function,
        handle.observe_function,
        handle.parameters,
        bound.ranking,
        handle.observed_ranking,
        handle.observed_rewards,
        state_note(state),
    )


@inlined
def rank_nested(
    nested: NestedKernel,
    user_type: int,
    t: int,
    parameters: Floats,
    first_parameter: int,
    rng: np.random.Generator,
) -> None:
    """Write a ranking to ``nested.ranking``, with parameters from a given one on."""
    for index in range(nested.parameters.size):
        nested.parameters[index] = parameters[first_parameter + index]
    store_generator(nested.generator_slot, rng)
    call_native(nested.rank_function, nested.memory.ctypes.data, user_type, t)


@inlined
def observe_nested(nested: NestedKernel, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
    """Learn from the rewards of a ranking, whose note must be in place."""
    for k in range(ranking.size):
        nested.observed_ranking[k] = ranking[k]
        nested.observed_rewards[k] = rewards[k]
    call_native(nested.observe_function, nested.memory.ctypes.data, user_type, t)
