"""The best rankings of a known world, under either treatment and any click model."""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import UnsolvableError
from banditrank.model.click_models import SINGLE_LOOK, ClickModel, make_world
from banditrank.model.problem import Problem
from banditrank.model.rewards import Bernoulli, Rewards
from banditrank.model.values import best_personalized_rankings
from banditrank.solvers.enumeration import ENUMERATION_LIMIT, number_of_rankings
from banditrank.solvers.solve import best_equal_ranking
from banditrank.utilities.utility import Utility


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
    if not click_model.is_additive:
        return _best_by_trying(problem, click_model, rewards, utility if equal else None)
    if equal:
        scale = (rewards or Bernoulli()).scale
        return np.tile(best_equal_ranking(problem, utility, scale=scale), (problem.n_user_types, 1))
    return best_personalized_rankings(problem)


def best_values(
    problem: Problem,
    *,
    equal: bool,
    utility: Utility,
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> NDArray[np.float64]:
    """Return what the best rankings are worth: to each type, shape (N,), or collectively, shape (1,)."""
    world = make_world(problem, rewards)
    rankings = best_rankings(
        problem, equal=equal, utility=utility, click_model=click_model, rewards=rewards
    ).astype(np.uintp)
    values = np.array([click_model.value(world, i, ranking) for i, ranking in enumerate(rankings)])
    return np.array([utility.collective(problem.arrival_rates, values)]) if equal else values


def _best_by_trying(
    problem: Problem, click_model: ClickModel, rewards: Rewards | None, utility: Utility | None
) -> NDArray[np.intp]:
    """Return the best rankings of a click model of which nothing more is known than its values."""
    count = number_of_rankings(problem.n_items, problem.n_positions)
    if count > ENUMERATION_LIMIT:
        size = f"{problem.n_items} items in {problem.n_positions} positions make {count:,}"
        raise UnsolvableError(
            f"click model {click_model.name} needs all rankings tried, at most {ENUMERATION_LIMIT:,}: {size}"
        )
    world = make_world(problem, rewards)
    rankings = np.array(list(permutations(range(problem.n_items), problem.n_positions)), dtype=np.uintp)
    values = np.array(  # (rankings, N)
        [[click_model.value(world, i, ranking) for i in range(problem.n_user_types)] for ranking in rankings]
    )
    if utility is not None:
        totals = [utility.collective(problem.arrival_rates, row) for row in values]
        best = np.full(problem.n_user_types, np.argmax(totals))
    else:
        best = values.argmax(axis=0)
    return rankings[best].astype(np.intp)
