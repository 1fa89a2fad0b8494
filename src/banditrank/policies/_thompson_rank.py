"""ThompsonRank: Thompson sampling with unknown position preferences and item means."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer, check_number
from banditrank._compilation import inlined, internal
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._click_models import RankOneClickModel, check_rank_one
from banditrank.policies._assumptions import RANK_ONE_REWARDS, Assumptions
from banditrank.policies._base import CompiledPolicy, Treatment, check_treatment, check_utility
from banditrank.policies._bound_posterior import (
    PosteriorHandle,
    bind_posterior,
    sample_posterior,
    update_posterior,
)
from banditrank.policies._kernel import Kernel
from banditrank.policies._loop_solvers import (
    LoopSolver,
    check_solver,
    choose_loop_solver,
    draw_personalized,
    init_loop_solver,
    init_lottery_solver,
    lottery_gaps,
    optimality_gaps,
    solve_in_loop,
)
from banditrank.policies._policy_guarantees import check_guarantees
from banditrank.policies._restricted_solver import (
    RestrictedSolver,
    init_restricted_solver,
    solve_restricted,
)
from banditrank.policies._restriction import Restriction, place_best
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.solvers._instance import Instance, copy_instance
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._solve import SolverName
from banditrank.utilities._utility import UTILITARIAN, Utility

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]


class ThompsonPersonalizedState(NamedTuple):
    """The posterior with the last sample of one type, and its ranking in the making."""

    posterior: PosteriorHandle
    positions: Indices  # (K,) by decreasing preference
    leaders: Indices  # (K,) items by decreasing mean


class ThompsonEqualState(NamedTuple):
    """The posterior, the last sample of all types as the solver's instance, and the solver."""

    posterior: PosteriorHandle
    instance: Instance
    solver: LoopSolver
    is_deferred: NDArray[np.int8]  # (1,) 1 if only the sample is needed, see `Kernel`


@inlined
def _rank_personalized(
    state: ThompsonPersonalizedState,
    user_type: int,
    t: int,  # noqa: ARG001 - the posterior depends on counts alone
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    sample_posterior(state.posterior, user_type, rng)
    top_k(state.posterior.preferences, state.positions)
    top_k(state.posterior.means, state.leaders)
    assign_in_order(state.leaders, state.positions, ranking)


@inlined
def _observe(
    state: ThompsonPersonalizedState | ThompsonEqualState,
    user_type: int,
    t: int,  # noqa: ARG001
    ranking: Indices,
    rewards: Floats,
) -> None:
    update_posterior(state.posterior, user_type, ranking, rewards)


@internal
def _sample_instance(posterior: PosteriorHandle, instance: Instance, rng: np.random.Generator) -> None:
    """Write a posterior sample of all types, and their weights: arrivals plus 1, normalised."""
    n_user_types = posterior.arrivals.size
    total = float(n_user_types)
    for i in range(n_user_types):
        total += posterior.arrivals[i]
    for i in range(n_user_types):
        instance.weights[i] = (posterior.arrivals[i] + 1.0) / total
        sample_posterior(posterior, i, rng)
        for k in range(posterior.preferences.size):
            instance.preferences[i, k] = posterior.preferences[k]
        for j in range(posterior.means.size):
            instance.means[i, j] = posterior.means[j] / posterior.unit


@inlined
def _rank_equal(
    state: ThompsonEqualState,
    user_type: int,  # noqa: ARG001 - all types get the same ranking
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    _sample_instance(state.posterior, state.instance, rng)
    if state.is_deferred[0] == 0:
        solve_in_loop(state.solver, state.instance, t, parameters[0], rng, ranking)


@inlined
def _draw_personalized(
    state: Any,  # a `ThompsonEqualState` with a `LotteryLoopSolver`
    user_type: int,
    t: int,  # noqa: ARG001 - the gap depends on it
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    _sample_instance(state.posterior, state.instance, rng)
    copy_instance(state.instance, state.solver.search.instance)
    draw_personalized(state.solver, user_type, parameters[0], rng, ranking)


@inlined
def _choose_personalized(
    state: ThompsonPersonalizedState,
    restriction: Restriction,
    workspace: None,  # noqa: ARG001 - none
    user_type: int,  # noqa: ARG001 - the sample is that of the type
    t: int,  # noqa: ARG001
    parameters: Floats,  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: Indices,
) -> None:
    place_best(restriction, state.posterior.means, state.posterior.preferences, ranking)


@inlined
def _choose_equal(
    state: ThompsonEqualState,
    restriction: Restriction,
    workspace: RestrictedSolver,
    user_type: int,  # noqa: ARG001 - all types get the same ranking
    t: int,
    parameters: Floats,  # noqa: ARG001 - exact
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    solve_restricted(workspace, state.instance, restriction, t, rng, ranking)


_PERSONALIZED_KERNEL = Kernel(_rank_personalized, _observe, _choose_personalized, ranks_first=True)
_PERSONALIZED_LOTTERY_KERNEL = Kernel(_draw_personalized, _observe)
_EQUAL_KERNEL = Kernel(_rank_equal, _observe, _choose_equal, ranks_first=True)


@dataclass(frozen=True, kw_only=True)
class ThompsonRank(CompiledPolicy):
    """ThompsonRank: the best ranking for a posterior sample of positions and items.

    The sample is joint: preferences ρ of each type, then means μ given ρ. It needs no initial phase, no order
    of positions and no horizon. Each call draws a new sample, so that rankings from stale counts still
    explore. See ``docs/explanation/thompson-rank.md``.

    Parameters
    ----------
    treatment
        ``personalized``: a ranking for each user type, or with guarantees a lottery. ``equal``: one ranking
        for all. ``equal-lottery``: one lottery over rankings for all, from which each user's ranking is
        drawn.
    utility
        Utility that equal treatment maximises, or its name; that of expected values under ``equal-lottery``,
        where it must be concave or maximin.
    solver
        Solver of ``equal`` treatment; ``auto`` chooses it by the utility.
    guarantees
        Least exposures of items (`LeastExposure`) and least values of user types (`KeptShare`), by index,
        under ``equal-lottery`` and ``personalized`` treatment, which then has a lottery for each type. The
        lotteries keep them for the posterior sample that they are made from.
    max_reward
        Maximum reward at a position; 1 for clicks.
    click_model
        ``single-look``: users look at one position. ``position-based``: they look at each position
        independently of the others, and may click several items.
    pooling
        Whether a user type starts from what the other types like. Where tastes differ, types soon learn for
        themselves either way.
    horizon
        Number of visits that a user type can expect, if that is known and small: fewer visits for each item
        leave less time to make use of exploration. Without it, few clicks for each item so far do the same.
    position_prior
        Number of looks at each position that you are as sure of its preference as; a uniform prior by
        default.
    position_order
        Positions by decreasing preference, from 0, if their order is known.

    Raises
    ------
    InvalidInputError
        If a parameter is not valid.
    UnsolvableError
        If the solver cannot maximise the utility.

    Examples
    --------
    An item with little exposure is explored from time to time:

    >>> counts = Counts.from_arrays([[[900], [9]]], [[[450], [3]]], [909])
    >>> rng = np.random.default_rng(1)
    >>> shown = [int(ThompsonRank().rank(counts, 0, rng=rng)[0]) for _ in range(100)]
    >>> 5 < sum(shown) < 35
    True
    """

    name: ClassVar[str] = "thompson-rank"
    assumptions: ClassVar[Assumptions] = RANK_ONE_REWARDS

    treatment: Treatment = "personalized"
    utility: Utility = UTILITARIAN
    solver: SolverName = "auto"
    guarantees: tuple[Guarantee, ...] = ()
    max_reward: float = 1.0
    click_model: RankOneClickModel = "single-look"
    pooling: bool = True
    horizon: int | None = None
    position_prior: tuple[float, ...] | None = None
    position_order: tuple[int, ...] | None = None

    if TYPE_CHECKING:  # __post_init__ converts what the fields do not take

        def __init__(
            self,
            *,
            treatment: Treatment = "personalized",
            utility: Utility | str = UTILITARIAN,
            solver: SolverName = "auto",
            guarantees: Iterable[Guarantee] = (),
            max_reward: float = 1.0,
            click_model: RankOneClickModel = "single-look",
            pooling: bool = True,
            horizon: int | None = None,
            position_prior: Sequence[float] | None = None,
            position_order: Sequence[int] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_treatment(self.treatment)
        object.__setattr__(self, "utility", check_utility(self.utility, self.treatment))
        check_number("max_reward", self.max_reward, 1e-6, 1e9)
        check_solver(self.solver, self.utility, self.treatment)
        object.__setattr__(self, "guarantees", check_guarantees(self.guarantees, self.treatment))
        check_rank_one(self.click_model)
        if not isinstance(self.pooling, bool):
            raise InvalidInputError("pooling", "must be true or false", self.pooling)
        if self.horizon is not None:
            object.__setattr__(self, "horizon", check_integer("horizon", self.horizon, 1))
        if self.position_prior is not None:
            looks = tuple(check_number("position_prior", one, 0.0, 1e9) for one in self.position_prior)
            object.__setattr__(self, "position_prior", looks)
        if self.position_order is not None:
            order = tuple(check_integer("position_order", one, 0) for one in self.position_order)
            if sorted(order) != list(range(len(order))):
                raise InvalidInputError("position_order", "must hold every position once, from 0", order)
            object.__setattr__(self, "position_order", order)

    def _check_positions(self, n_positions: int) -> None:
        for field in ("position_prior", "position_order"):
            given = getattr(self, field)
            if given is not None and len(given) != n_positions:
                raise InvalidInputError(
                    field, f"must have {n_positions} values, one for each position", given
                )

    @property
    def has_candidates(self) -> bool:  # type: ignore[override]
        """Whether it can rank some of the items: not by a lottery."""
        return not self.has_lotteries

    def describe(self) -> dict[str, Any]:
        """Return the policy's name and parameters as plain values."""
        solver = self.solver if self.treatment == "equal" else None
        return {
            **super().describe(),
            "solver": solver,
            "max_reward": self.max_reward,
            "click_model": self.click_model,
            "pooling": self.pooling,
            "horizon": self.horizon,
            "position_prior": self.position_prior,
            "position_order": self.position_order,
        }

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:
        """Return the compiled functions for the treatment.

        Raises
        ------
        UnsolvableError
            If the solver cannot solve problems of this size.
        """
        if self.treatment == "personalized":
            return _PERSONALIZED_LOTTERY_KERNEL if self.has_lotteries else _PERSONALIZED_KERNEL
        if self.treatment == "equal":
            self._loop_solver(n_items=n_items, n_positions=n_positions)  # raises if too large
        return _EQUAL_KERNEL

    def init_state(self, counts: Counts, scratch: Any) -> Any:  # noqa: ARG002 - the posterior depends on counts alone
        """Return the posterior given counts, and workspaces."""
        n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
        self._check_positions(k)
        posterior = bind_posterior(
            counts,
            self.max_reward,
            is_position_based=self.click_model == "position-based",
            is_pooled=self.pooling,
            horizon=self.horizon,
            position_prior=self.position_prior,
            position_order=self.position_order,
        )
        if self.treatment == "personalized" and not self.has_lotteries:
            positions, leaders = np.zeros(k, dtype=np.uintp), np.zeros(k, dtype=np.uintp)
            return ThompsonPersonalizedState(posterior, positions, leaders)
        sizes = {"n_user_types": n, "n_items": m, "n_positions": k}
        solver: LoopSolver
        if self.has_lotteries:
            solver = init_lottery_solver(self.treatment, self.utility, self.guarantees, **sizes)
        else:
            solver = init_loop_solver(self._loop_solver(n_items=m, n_positions=k), self.utility, **sizes)
        instance = Instance(np.zeros(n), np.zeros((n, k)), np.zeros((n, m)), np.zeros(m))
        return ThompsonEqualState(posterior, instance, solver, np.zeros(1, dtype=np.int8))

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> RestrictedSolver | None:
        """Return a solver among candidates for equal treatment, None for personalized treatment."""
        if self.treatment == "personalized":
            return None
        return init_restricted_solver(
            self._loop_solver(n_items=n_items, n_positions=n_positions),
            self.utility,
            n_user_types=n_user_types,
            n_items=n_items,
            n_positions=n_positions,
        )

    def parameters(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the solver's optimality gap, shape (rounds, 1)."""
        gaps = lottery_gaps(rounds, self.treatment) if self.has_lotteries else optimality_gaps(rounds)
        return gaps[:, None]

    def sampled_problem(self, state: Any) -> SampledProblem:
        """Return the posterior sample of the last ranking: of all types, or of one if it suffices."""
        if isinstance(state, ThompsonPersonalizedState):
            posterior = state.posterior
            means = posterior.means / posterior.unit
            return SampledProblem(np.ones(1), posterior.preferences[None].copy(), means[None])
        instance = state.instance
        return SampledProblem(instance.weights.copy(), instance.preferences.copy(), instance.means.copy())

    def _loop_solver(self, *, n_items: int, n_positions: int) -> SolverName:
        return choose_loop_solver(self.solver, self.utility, n_items=n_items, n_positions=n_positions)
