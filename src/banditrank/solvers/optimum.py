"""The best rankings of a known world, under either treatment and any click model."""

from collections.abc import Iterator
from itertools import combinations, islice, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import UnsolvableError
from banditrank.model.click_models import SINGLE_LOOK, ClickModel, compile_problem
from banditrank.model.problem import Problem
from banditrank.model.rewards import BernoulliRewards, Rewards
from banditrank.model.values import best_personalized_rankings
from banditrank.solvers.enumeration import MAX_ENUMERATED_RANKINGS
from banditrank.solvers.solve import best_equal_ranking
from banditrank.utilities.utility import Utility


class _Weighted(NamedTuple):
    """A problem whose positions weigh what a click model says."""

    arrival_rates: NDArray[np.float64]
    position_preferences: NDArray[np.float64]
    item_means: NDArray[np.float64]


def best_rankings(
    problem: Problem,
    *,
    equal: bool,
    utility: Utility,
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> NDArray[np.intp]:
    """Return the best ranking of each type, shape (N, K); under equal treatment all rows are the same.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> from banditrank.utilities.utility import NASH
    >>> best_rankings(kdd2012(), equal=True, utility=NASH)
    array([[2, 3],
           [2, 3]])
    """
    if click_model.depends_on == "ranking":
        tried = permutations(range(problem.n_items), problem.n_positions)
        return _best_by_trying(tried, problem, click_model, rewards, utility if equal else None)
    if not equal:  # where only the items count, the best items in any order
        return best_personalized_rankings(problem)
    if click_model.depends_on == "items":
        chosen = combinations(range(problem.n_items), problem.n_positions)
        return _best_by_trying(chosen, problem, click_model, rewards, utility)
    scale = (rewards or BernoulliRewards()).scale
    weights = click_model.position_weights(problem)
    known = _Weighted(problem.arrival_rates, weights, problem.item_means)
    return np.tile(best_equal_ranking(known, utility, scale=scale), (problem.n_user_types, 1))


def best_values(
    problem: Problem,
    *,
    equal: bool,
    utility: Utility,
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> NDArray[np.float64]:
    """Return what the best rankings are worth: to each type, shape (N,), or collectively, shape (1,)."""
    world = compile_problem(problem, rewards, click_model)
    rankings = best_rankings(
        problem, equal=equal, utility=utility, click_model=click_model, rewards=rewards
    ).astype(np.uintp)
    values = np.array([click_model.value(world, i, ranking) for i, ranking in enumerate(rankings)])
    return np.array([utility.collective(problem.arrival_rates, values)]) if equal else values


def _best_by_trying(
    rankings: Iterator[tuple[int, ...]],
    problem: Problem,
    click_model: ClickModel,
    rewards: Rewards | None,
    utility: Utility | None,
) -> NDArray[np.intp]:
    """Return the best of the rankings, of which nothing more is known than their values."""
    tried = np.array(list(islice(rankings, MAX_ENUMERATED_RANKINGS + 1)), dtype=np.uintp)
    if len(tried) > MAX_ENUMERATED_RANKINGS:
        size = f"{problem.n_items} items in {problem.n_positions} positions"
        raise UnsolvableError(
            f"click model {click_model.name} needs all rankings tried, at most {MAX_ENUMERATED_RANKINGS:,}: {size} "
            "make more"
        )
    world = compile_problem(problem, rewards, click_model)
    values = np.array(  # (rankings, N)
        [[click_model.value(world, i, ranking) for i in range(problem.n_user_types)] for ranking in tried]
    )
    if utility is not None:
        totals = [utility.collective(problem.arrival_rates, row) for row in values]
        best = np.full(problem.n_user_types, np.argmax(totals))
    else:
        best = values.argmax(axis=0)
    return tried[best].astype(np.intp)
