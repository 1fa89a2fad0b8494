"""The oracle, which knows the problem: its regret is 0."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError
from banditrank.model._click_models import SINGLE_LOOK, ClickModel
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, Rewards
from banditrank.policies._base import (
    CompiledPolicy,
    Treatment,
    check_treatment,
    check_utility,
    observe_nothing,
)
from banditrank.policies._drawn_lottery import ALL_TYPES, LotteryBuffer, draw_from_buffer, new_lottery_buffer
from banditrank.policies._kernel import Kernel
from banditrank.policies._policy_guarantees import check_guarantees
from banditrank.policies._restriction import FREE, LENGTH, Restriction, place_best
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._optimum import WeightedProblem, best_lottery, best_rankings
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import UTILITARIAN, Utility


class OracleState(NamedTuple):
    """The optimal rankings."""

    rankings: NDArray[np.uintp]  # (N, K)


@inlined
def _rank(
    state: OracleState,
    user_type: int,
    t: int,  # noqa: ARG001 - the ranking never changes
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    for position in range(ranking.size):
        ranking[position] = state.rankings[user_type, position]


class OracleLotteryState(NamedTuple):
    """The optimal lottery, or that of each user type."""

    lottery: LotteryBuffer


@inlined
def _draw(
    state: OracleLotteryState,
    user_type: int,
    t: int,  # noqa: ARG001 - the lotteries never change
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,
    ranking: NDArray[np.uintp],
) -> None:
    state.lottery.size[0] = state.lottery.probabilities.size
    draw_from_buffer(state.lottery, user_type, rng.random(), ranking)


def _choose(
    state: OracleState,  # noqa: ARG001 - the rankings of all items
    restriction: Restriction,
    oracle: "Oracle",
    user_type: int,
    t: int,  # noqa: ARG001
    parameters: NDArray[np.float64],  # noqa: ARG001
    rng: np.random.Generator,  # noqa: ARG001
    ranking: NDArray[np.uintp],
) -> None:
    """Write the best allowed ranking; in plain Python, because a problem may have zeros and needs `solve`."""
    problem, length = oracle.problem, restriction.sizes[LENGTH]
    if oracle.treatment == "personalized":
        weights = problem.position_preferences[user_type].copy()  # the order of positions in all click models
        place_best(restriction, problem.item_means[user_type].copy(), weights, ranking)
        return
    pinned = restriction.pinned[:length]
    allowed = np.where(
        pinned[:, None] >= 0, pinned[:, None] == np.arange(problem.n_items), restriction.roles == FREE
    )
    weights = oracle.click_model.position_weights(problem)[:, :length]
    shown = WeightedProblem(problem.arrival_rates, weights, problem.item_means)
    scale = (oracle.rewards or BernoulliRewards()).scale
    ranking[:length] = solve(shown, oracle.utility, allowed=allowed, scale=scale).ranking


@dataclass(frozen=True)
class Oracle(CompiledPolicy):
    """Oracle: the best ranking of each user type, the best equal ranking, or the best lottery for all.

    Parameters
    ----------
    problem, click_model, rewards
        The problem that it knows.
    treatment, utility
        What it maximises.
    guarantees
        What its lottery keeps under ``equal-lottery``, or the lotteries of the types under ``personalized``.

    Raises
    ------
    UnknownNameError
        If the treatment or the utility is unknown.
    UnsolvableError
        If the best equal ranking cannot be found, or there is no best lottery.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> oracle = Oracle(kdd2012())
    >>> oracle.rank(Counts.empty_for(kdd2012()), 1, rng=np.random.default_rng(0))
    array([3, 2])
    """

    name: ClassVar[str] = "oracle"

    problem: Problem
    treatment: Treatment = field(default="personalized", kw_only=True)
    utility: Utility = field(default=UTILITARIAN, kw_only=True)
    guarantees: tuple[Guarantee, ...] = field(default=(), kw_only=True)
    click_model: ClickModel = field(default=SINGLE_LOOK, kw_only=True)
    rewards: Rewards | None = field(default=None, kw_only=True)
    rankings: NDArray[np.intp] = field(init=False, repr=False, compare=False)  # of types, or of the lottery
    probabilities: NDArray[np.float64] = field(
        init=False, repr=False, compare=False
    )  # of a lottery's rankings

    def __post_init__(self) -> None:
        equal = check_treatment(self.treatment) == "equal"
        object.__setattr__(self, "utility", check_utility(self.utility, self.treatment))
        object.__setattr__(self, "guarantees", check_guarantees(self.guarantees, self.treatment))
        if self.has_lotteries:
            lottery = best_lottery(
                *(self.problem, self.utility, self.guarantees),
                treatment=self.treatment,
                click_model=self.click_model,
                rewards=self.rewards,
            )
            object.__setattr__(self, "rankings", lottery.rankings)
            object.__setattr__(self, "probabilities", lottery.probabilities)
            return
        rankings = best_rankings(
            self.problem,
            equal=equal,
            utility=self.utility,
            click_model=self.click_model,
            rewards=self.rewards,
        )
        object.__setattr__(self, "rankings", rankings)
        object.__setattr__(self, "probabilities", np.ones(0))

    def kernel(self, *, n_items: int, n_positions: int) -> Kernel:  # noqa: ARG002 - one for all sizes
        """Return the compiled functions."""
        if self.has_lotteries:
            return Kernel(_draw, observe_nothing)
        return Kernel(_rank, observe_nothing, _choose)

    @property
    def has_candidates(self) -> bool:  # type: ignore[override]
        """Whether the click model leaves more than enumeration to find the best of some rankings."""
        if self.has_lotteries:
            return False
        if self.treatment == "personalized":
            return self.click_model.depends_on != "ranking"
        return self.click_model.depends_on == "cells"

    def init_choice(self, *, n_user_types: int, n_items: int, n_positions: int) -> "Oracle":  # noqa: ARG002
        """Return the oracle itself."""
        return self

    def init_state(self, counts: Counts, scratch: Any) -> OracleState | OracleLotteryState:  # noqa: ARG002 - stateless
        """Return the optimal rankings.

        Raises
        ------
        InvalidInputError
            If the counts have another shape than the problem.
        """
        problem = self.problem
        shape = (problem.n_user_types, problem.n_items, problem.n_positions)
        if counts.displays.shape != shape:
            rule = f"must have the shape of the oracle's problem, {shape}"
            raise InvalidInputError("counts", rule, counts.displays.shape)
        if self.has_lotteries:
            owners, shown = np.nonzero(np.atleast_2d(self.probabilities) > 0.0)
            lottery = new_lottery_buffer(shown.size, problem.n_positions)
            lottery.rankings[:] = self.rankings[shown]
            lottery.probabilities[:] = np.atleast_2d(self.probabilities)[owners, shown]
            lottery.owners[:] = ALL_TYPES if self.treatment == "equal-lottery" else owners
            return OracleLotteryState(lottery)
        return OracleState(self.rankings.astype(np.uintp))
