"""A click model that is bound to a problem, and called by address."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, wrap_formula
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.model._click_models import ClickModel, CompiledProblem

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class ClickArguments(NamedTuple):
    """Arguments of a click model's functions."""

    problem: CompiledProblem
    ranking: Indices  # (K,)
    rewards: Floats  # (K,) of the last user
    value: Floats  # (1,) the last expected reward


class ClickHandle(NamedTuple):
    """A bound click model as compiled code sees it, whatever the model."""

    arrival_rates: Floats  # (N,)
    arrival_limits: Floats  # (N,) cumulative
    arguments: int  # address of the `ClickArguments`
    draw_function: int  # addresses of native functions
    value_function: int
    value: Floats


class BoundClickModel:
    """A click model with a problem, a generator, and arrays for a ranking and its rewards.

    Attributes
    ----------
    handle
        The bound click model for compiled callers. It is valid as long as this object exists.
    """

    def __init__(
        self,
        model: ClickModel,
        problem: CompiledProblem,
        rng: np.random.Generator,
        *,
        ranking: Indices,
        rewards: Floats,
    ) -> None:
        arguments = ClickArguments(problem, ranking, rewards, np.zeros(1))
        self._native = NativeArguments(arguments, rng)
        self.handle = ClickHandle(
            problem.arrival_rates,
            problem.arrival_limits,
            self._native.address,
            self._native.native_function(wrap_formula(_build_draw, model.draw)),
            self._native.native_function(wrap_formula(_build_value, model.value)),
            arguments.value,
        )

    def draw(self, user_type: int) -> None:
        """Simulate one user."""
        call_native(self.handle.draw_function, self.handle.arguments, user_type, 0)


def _build_draw(draw: Callable[..., None]) -> Callable[..., None]:
    def native_draw(pointer: Any, user_type: int, _: int) -> None:
        arguments, rng = load_arguments(pointer)
        draw(arguments.problem, user_type, arguments.ranking, rng, arguments.rewards)

    return native_draw


def _build_value(value: Callable[..., float]) -> Callable[..., None]:
    def native_value(pointer: Any, user_type: int, _: int) -> None:
        arguments = load_arguments(pointer)[0]
        arguments.value[0] = value(arguments.problem, user_type, arguments.ranking)

    return native_value


@inlined
def draw_by_handle(
    handle: ClickHandle,
    user_type: int,
    ranking: Indices,  # noqa: ARG001 - bound, as the next two
    rng: np.random.Generator,  # noqa: ARG001
    rewards: Floats,  # noqa: ARG001
) -> None:
    """Simulate one user: ``draw`` of a `ClickModel` whose problem is a handle."""
    call_native(handle.draw_function, handle.arguments, user_type, 0)


@inlined
def value_by_handle(handle: ClickHandle, user_type: int, ranking: Indices) -> float:  # noqa: ARG001
    """Return a ranking's expected reward: ``value`` of a `ClickModel` whose problem is a handle."""
    call_native(handle.value_function, handle.arguments, user_type, 0)
    return float(handle.value[0])
