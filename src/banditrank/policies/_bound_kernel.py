"""A kernel that is bound to a state, and called by address.

The compiled functions of a policy depend on the types of its state alone, so they are compiled once for
Python, for batches and for the simulation loop with every click model.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import check_unchanged, compiled, inlined, is_own, wrap_formula
from banditrank._interrupts import deferred_interrupts
from banditrank._native_calls import NativeArguments, call_native, load_arguments
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import (
    GIVEN,
    IS_SHORT_ALLOWED,
    LENGTH,
    Restriction,
    load_restriction,
    restriction_error,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class KernelArguments(NamedTuple):
    """Arguments of a kernel's functions that stay the same from round to round, as objects or as buffers."""

    state: Any
    parameters: Floats  # (P,) of the next ranking
    ranking: Indices  # (K,) the last ranking
    observed_ranking: Indices  # (K,)
    observed_rewards: Floats  # (K,)


class ChoiceArguments(NamedTuple):
    """Arguments of ``choose`` that stay the same from call to call."""

    state: Any
    restriction: Restriction
    workspace: Any
    parameters: Floats  # (P,)
    ranking: Indices  # (K,)
    is_deferred: NDArray[np.int8]  # (1,) of the state, if it has one
    rank_function: int  # address of a native function
    rank_arguments: int  # address of its `KernelArguments`


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
    init_choice
        Returns a restriction and the workspace of ``choose``, which are allocated when it is first called.

    Attributes
    ----------
    state, ranking
        As passed.
    handle
        The bound kernel for compiled callers, valid as long as this object exists; None if the formulas are
        not part of this package: they are then called directly.
    native_arguments
        The arguments that the handle refers to; None without a handle.
    """

    def __init__(
        self,
        kernel: Kernel,
        state: Any,
        rng: np.random.Generator,
        *,
        ranking: Indices,
        n_parameters: int,
        init_choice: Callable[[], tuple[Restriction, Any]] | None = None,
    ) -> None:
        self._kernel, self._rng, self._n_parameters = kernel, rng, n_parameters
        self._init_choice = init_choice
        self._choice: _BoundChoice | None = None
        self._short_arguments: dict[int, NativeArguments] = {}  # by number of positions
        self.state = state
        self.ranking = ranking
        self.handle: KernelHandle | None = None
        self.native_arguments: NativeArguments | None = None
        if is_own(kernel.rank) and is_own(kernel.observe):
            self.handle = self._bind()
        else:
            check_unchanged(kernel.rank)
            check_unchanged(kernel.observe)

    def _bind(self) -> KernelHandle:
        ranking = self.ranking
        self._arguments = arguments = KernelArguments(
            self.state,
            np.zeros(self._n_parameters),
            ranking,
            np.zeros_like(ranking),
            np.zeros(ranking.size),
        )
        self.native_arguments = native = NativeArguments(arguments, self._rng)
        return KernelHandle(
            native.address,
            native.native_function(wrap_formula(_build_rank, self._kernel.rank)),
            native.native_function(wrap_formula(_build_observe, self._kernel.observe)),
            *(arguments.parameters, arguments.observed_ranking, arguments.observed_rewards),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebind, (
            *(self._kernel, self.state, self._rng, self.ranking),
            *(self._n_parameters, self._init_choice),
        )

    def rank(self, user_type: int, t: int, parameters: Floats) -> Indices:
        """Write the ranking of round t to `ranking`, shape (K,), and return it."""
        if self.handle is None:
            with deferred_interrupts():
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

    def choose(
        self,
        user_type: int,
        t: int,
        parameters: Floats,
        candidates: NDArray[np.intp] | None = None,
        pinned: NDArray[np.intp] | None = None,
        *,
        allow_short: bool = False,
    ) -> Indices:
        """Write the best allowed ranking of round t to `ranking`, and return it.

        Parameters
        ----------
        user_type, t, parameters
            As for `rank`.
        candidates
            Items that may be shown, at most M; all items by default.
        pinned
            The item that must be shown at each position, −1 for none, shape (K,); none by default.
        allow_short
            Whether to fill the first positions only if there are fewer candidates than positions.

        Returns
        -------
        Indices
            A view of `ranking`, shape (K,) or shorter.

        Raises
        ------
        InvalidInputError
            If an item does not exist or is pinned twice, or there are too few candidates.
        TypeError
            If the kernel cannot restrict its rankings.
        """
        choice, ranking = self._choice, self.ranking
        if choice is None:
            choice = self._choice = self._bind_choice()
        if candidates is None:
            candidates = choice.all_items
        n_candidates, sizes = candidates.size, choice.sizes
        choice.given[:n_candidates] = candidates
        sizes[GIVEN] = n_candidates
        if pinned is not None or allow_short or not choice.is_plain:
            choice.load_options(pinned, allow_short=allow_short)
        if choice.function > 0 and self.handle is not None:
            self.handle.parameters[:] = parameters
            call_native(choice.function, choice.address, user_type, t)
        else:
            choice.call(user_type, t, parameters)
        length = sizes.item(LENGTH)
        if length == 0:
            raise restriction_error(choice.restriction)
        return ranking if length == ranking.size else ranking[:length]

    def _bind_choice(self) -> "_BoundChoice":
        if self._init_choice is None or self._kernel.choose is None:
            raise TypeError("the kernel cannot restrict its rankings")
        return _BoundChoice(
            self._kernel, self.state, self._rng, self.ranking, self.handle, *self._init_choice()
        )

    def observe(self, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
        """Learn from the rewards of a ranking, both of shape (K,), or shorter for its first positions."""
        if self.handle is None:
            self._kernel.observe(self.state, user_type, t, ranking, rewards)
            return
        n_positions, address = ranking.size, self.handle.arguments
        self.handle.observed_ranking[:n_positions] = ranking
        self.handle.observed_rewards[:n_positions] = rewards
        if n_positions < self.ranking.size:
            address = self._shortened(n_positions).address
        call_native(self.handle.observe_function, address, user_type, t)

    def _shortened(self, n_positions: int) -> NativeArguments:
        """Return arguments whose observed ranking is short, of the same layout: the function is the same."""
        native = self._short_arguments.get(n_positions)
        if native is None:
            arguments = self._arguments._replace(
                observed_ranking=self._arguments.observed_ranking[:n_positions],
                observed_rewards=self._arguments.observed_rewards[:n_positions],
            )
            native = self._short_arguments[n_positions] = NativeArguments(arguments, self._rng)
        return native


class _BoundChoice:
    """``choose`` of a kernel, bound to a restriction and a workspace."""

    def __init__(
        self,
        kernel: Kernel,
        state: Any,
        rng: np.random.Generator,
        ranking: Indices,
        handle: KernelHandle | None,
        restriction: Restriction,
        workspace: Any,
    ) -> None:
        self.restriction = restriction
        self.given, self.sizes = restriction.given, restriction.sizes
        self.all_items = np.arange(restriction.roles.size)
        self.is_plain = True  # neither pins nor short rankings in the last call
        self._kernel, self._state, self._workspace = kernel, state, workspace
        self._rng, self._ranking = rng, ranking
        self._is_deferred = getattr(state, "is_deferred", np.zeros(1, dtype=np.int8))
        self.function = self.address = 0  # if ``choose`` is not compiled by this package
        choose: Any = kernel.choose
        if handle is not None and hasattr(choose, "py_func") and is_own(choose):
            self._native = NativeArguments(
                ChoiceArguments(
                    *(state, restriction, workspace, handle.parameters, ranking, self._is_deferred),
                    *(handle.rank_function, handle.arguments),
                ),
                rng,
            )
            build = _build_choose_after_rank if kernel.ranks_first else _build_choose
            self.function = self._native.native_function(wrap_formula(build, choose))
            self.address = self._native.address

    def load_options(self, pinned: NDArray[np.intp] | None, *, allow_short: bool) -> None:
        """Write the pins, and whether the ranking may be short."""
        self.is_plain = pinned is None and not allow_short
        self.restriction.pinned[:] = -1 if pinned is None else pinned
        self.sizes[IS_SHORT_ALLOWED] = allow_short

    def call(self, user_type: int, t: int, parameters: Floats) -> None:
        """Write the ranking of round t with functions that are not native."""
        kernel: Any = self._kernel
        if not load_restriction(self.restriction):
            return
        if kernel.ranks_first:
            self._is_deferred[0] = 1
            kernel.rank(self._state, user_type, t, parameters, self._rng, self._ranking)
            self._is_deferred[0] = 0
        kernel.choose(
            *(self._state, self.restriction, self._workspace, user_type, t, parameters, self._rng),
            self._ranking,
        )


def _rebind(
    kernel: Kernel,
    state: Any,
    rng: np.random.Generator,
    ranking: Indices,
    n_parameters: int,
    init_choice: Callable[[], tuple[Restriction, Any]] | None,
) -> BoundKernel:
    """Return a copy with addresses of its own: of `copy.deepcopy`, or in another process."""
    return BoundKernel(
        kernel, state, rng, ranking=ranking, n_parameters=n_parameters, init_choice=init_choice
    )


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


def _build_choose(choose: Callable[..., None]) -> Callable[..., None]:
    def native_choose(pointer: Any, user_type: int, t: int) -> None:
        arguments, rng = load_arguments(pointer)
        if load_restriction(arguments.restriction):
            choose(
                arguments.state,
                arguments.restriction,
                arguments.workspace,
                user_type,
                t,
                arguments.parameters,
                rng,
                arguments.ranking,
            )

    return native_choose


def _build_choose_after_rank(choose: Callable[..., None]) -> Callable[..., None]:
    def native_choose(pointer: Any, user_type: int, t: int) -> None:
        arguments, rng = load_arguments(pointer)
        if load_restriction(arguments.restriction):
            arguments.is_deferred[0] = 1
            call_native(arguments.rank_function, arguments.rank_arguments, user_type, t)
            arguments.is_deferred[0] = 0
            choose(
                arguments.state,
                arguments.restriction,
                arguments.workspace,
                user_type,
                t,
                arguments.parameters,
                rng,
                arguments.ranking,
            )

    return native_choose


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
