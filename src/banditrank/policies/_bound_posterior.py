"""The posterior of ThompsonRank, bound to its native functions.

The formulas of `banditrank.policies._posterior` are compiled once, for both treatments and for the dashboard,
and called by address.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank._native_calls import NativeArguments, call_native, generator_address, stored_values
from banditrank.counts._counts import Counts
from banditrank.policies._posterior import (
    Posterior,
    new_posterior,
    refit_type,
    sample_type,
    update_type,
)

Floats = NDArray[np.float64]

_WARM_UP_REFITS = 20  # at the start, to converge
_WARM_UP_BOUNDS = (5, 10)  # refits that also bound how much tastes differ


class PosteriorHandle(NamedTuple):
    """A posterior whose functions are called by address. Copies are bound to addresses of their own."""

    memory: NDArray[np.uint64]  # the `Posterior`
    refit_function: int  # addresses of native functions
    sample_function: int
    update_function: int
    unit: float  # the fields below are those of the posterior and its buffers
    arrivals: Floats  # (N,)
    rounds: Floats  # (N,)
    refit_at: Floats  # (N,)
    ranking: NDArray[np.uintp]  # (K,)
    rewards: Floats  # (K,)
    preferences: Floats  # (K,) the last sample of a type
    means: Floats  # (M,) the last sample of a type, in units of the maximum reward

    def posterior(self) -> Posterior:
        """Return the posterior itself, whose arrays are not copied."""
        posterior: Posterior = stored_values(self.memory)[0]
        return posterior

    def __reduce__(self) -> tuple[Any, ...]:
        return _bind, (self.posterior(),)


def bind_posterior(
    counts: Counts,
    max_reward: float,
    *,
    is_position_based: bool = False,
    is_pooled: bool = True,
    horizon: int | None = None,
    position_prior: Sequence[float] | None = None,
    position_order: Sequence[int] | None = None,
) -> PosteriorHandle:
    """Return the posterior given counts, whose arrays are not copied.

    Parameters
    ----------
    counts, max_reward, is_position_based, is_pooled, horizon, position_prior, position_order
        As for `new_posterior`.
    """
    handle = _bind(
        new_posterior(
            counts,
            max_reward,
            is_position_based=is_position_based,
            is_pooled=is_pooled,
            horizon=horizon,
            position_prior=position_prior,
            position_order=position_order,
        )
    )
    _warm_up(handle.refit_function, handle.memory, handle.rounds.size)
    return handle


def _bind(posterior: Posterior) -> PosteriorHandle:
    native = NativeArguments(posterior)
    return PosteriorHandle(
        native.memory,
        native.native_function(refit_type),
        native.native_function(sample_type),
        native.native_function(update_type),
        *(posterior.unit, posterior.arrivals, posterior.rounds, posterior.refit_at),
        *posterior.buffers,
    )


@compiled
def _warm_up(refit_function: int, memory: NDArray[np.uint64], n_user_types: int) -> None:
    for refit in range(_WARM_UP_REFITS):
        is_bounded = int(refit in _WARM_UP_BOUNDS)
        for i in range(n_user_types):
            call_native(refit_function, memory.ctypes.data, i, is_bounded)


@inlined
def sample_posterior(handle: PosteriorHandle, user_type: int, rng: np.random.Generator) -> None:
    """Write a posterior sample of a type to ``preferences`` and ``means``; refit the approximation if due."""
    if handle.rounds[user_type] >= handle.refit_at[user_type]:
        call_native(handle.refit_function, handle.memory.ctypes.data, user_type, 0)
    call_native(handle.sample_function, handle.memory.ctypes.data, user_type, generator_address(rng))


@inlined
def update_posterior(
    handle: PosteriorHandle, user_type: int, ranking: NDArray[np.uintp], rewards: Floats
) -> None:
    """Update the posterior with a round, shape (K,) or shorter; the approximation is not refitted."""
    for k in range(ranking.size):
        handle.ranking[k] = ranking[k]
        handle.rewards[k] = rewards[k]
    call_native(handle.update_function, handle.memory.ctypes.data, user_type, ranking.size)
