"""Best rankings of a problem under either treatment and any click model."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import combinations, islice, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import InvalidInputError, UnsolvableError
from banditrank.model._click_models import SINGLE_LOOK, ClickModel, compile_problem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, Rewards
from banditrank.model._values import best_personalized_rankings
from banditrank.solvers._enumeration import MAX_ENUMERATED_RANKINGS
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.solvers._lottery.solve import solve_lottery
from banditrank.solvers._solve import best_equal_ranking
from banditrank.utilities._utility import UTILITARIAN, Utility, as_utility


class WeightedProblem(NamedTuple):
    """A problem with the position weights of a click model."""

    arrival_rates: NDArray[np.float64]
    position_preferences: NDArray[np.float64]
    item_means: NDArray[np.float64]


def best_rankings(
    problem: Problem,
    *,
    equal: bool,
    utility: Utility | str,
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> NDArray[np.intp]:
    """Return the best ranking of each type, shape (N, K); under equal treatment all rows are equal.

    Raises
    ------
    UnsolvableError
        If there are too many rankings to enumerate, and the click model or the utility requires it.
    InvalidInputError
        If the utility is unknown.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.utilities._utility import NASH
    >>> best_rankings(kdd2012(), equal=True, utility=NASH)
    array([[2, 3],
           [2, 3]])
    """
    utility = as_utility(utility)
    if click_model.depends_on == "ranking":
        rankings = permutations(range(problem.n_items), problem.n_positions)
        return _best_by_enumeration(rankings, problem, click_model, rewards, utility if equal else None)
    if not equal:  # if only the items matter, these are the best items too
        return best_personalized_rankings(problem)
    if click_model.depends_on == "items":
        chosen = combinations(range(problem.n_items), problem.n_positions)
        return _best_by_enumeration(chosen, problem, click_model, rewards, utility)
    scale = (rewards or BernoulliRewards()).scale
    weights = click_model.position_weights(problem)
    weighted = WeightedProblem(problem.arrival_rates, weights, problem.item_means)
    return np.tile(best_equal_ranking(weighted, utility, scale=scale), (problem.n_user_types, 1))


def best_values(
    problem: Problem,
    *,
    equal: bool,
    utility: Utility | str,
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> NDArray[np.float64]:
    """Return the values of `best_rankings`: of each type, shape (N,), or the collective utility, shape (1,).

    Raises
    ------
    UnsolvableError
        If there are too many rankings to enumerate, and the click model or the utility requires it.
    InvalidInputError
        If the utility is unknown.
    """
    compiled = compile_problem(problem, rewards, click_model)
    rankings = best_rankings(
        problem, equal=equal, utility=utility, click_model=click_model, rewards=rewards
    ).astype(np.uintp)
    values = np.array([click_model.value(compiled, i, ranking) for i, ranking in enumerate(rankings)])
    return np.array([as_utility(utility).collective(problem.arrival_rates, values)]) if equal else values


def best_lottery(
    problem: Problem,
    utility: Utility | str,
    guarantees: Iterable[Guarantee] = (),
    *,
    treatment: str = "equal-lottery",
    click_model: ClickModel = SINGLE_LOOK,
    rewards: Rewards | None = None,
) -> Lottery:
    """Return the best lottery over rankings that keeps guarantees.

    Parameters
    ----------
    problem, click_model, rewards
        The problem.
    utility
        What the lottery for all types maximises; personalized ones have the largest total value.
    guarantees
        What the lotteries keep.
    treatment
        ``equal-lottery``: the same lottery for all types; ``personalized``: one for each.

    Raises
    ------
    UnsolvableError
        If the utility is not concave, the value of an item at a position depends on other items, or the
        guarantees cannot be kept together.
    InvalidInputError
        If the utility is unknown, or a guarantee is not valid.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> best_lottery(kdd2012(), "nash").rankings
    array([[2, 3]])
    """
    if click_model.depends_on != "cells":
        raise UnsolvableError(
            f"a lottery needs clicks that depend on an item and its position alone, "
            f"got click model {click_model.name}"
        )
    weights = click_model.position_weights(problem)
    weighted = WeightedProblem(problem.arrival_rates, weights, problem.item_means)
    is_personalized = treatment == "personalized"
    return solve_lottery(
        weighted,
        UTILITARIAN if is_personalized else utility,
        guarantees=guarantees,
        treatment="personalized" if is_personalized else "equal",
        scale=(rewards or BernoulliRewards()).scale,
    )


def best_feasible_lottery(
    problem: Problem,
    utility: Utility | str,
    guarantees: Iterable[Guarantee],
    *,
    treatment: str = "equal-lottery",
    click_model: ClickModel = SINGLE_LOOK,
) -> Lottery:
    """Return the best lottery; without the guarantees if they cannot be kept, or name unknown items.

    Raises
    ------
    UnsolvableError, InvalidInputError
        As `best_lottery` without guarantees.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> from banditrank.solvers._lottery.guarantees import KeptShare
    >>> best_feasible_lottery(kdd2012(), "nash", [KeptShare(1.0)]).guarantees
    ()
    """
    find_lottery = partial(best_lottery, problem, utility, treatment=treatment, click_model=click_model)
    try:
        return find_lottery(guarantees)
    except (InvalidInputError, UnsolvableError):
        return find_lottery()


def _best_by_enumeration(
    rankings: Iterator[tuple[int, ...]],
    problem: Problem,
    click_model: ClickModel,
    rewards: Rewards | None,
    utility: Utility | None,
) -> NDArray[np.intp]:
    """Return the best of the given rankings, for each type or collectively, by evaluating all of them."""
    tried = np.array(list(islice(rankings, MAX_ENUMERATED_RANKINGS + 1)), dtype=np.uintp)
    if len(tried) > MAX_ENUMERATED_RANKINGS:
        raise UnsolvableError(
            f"click model {click_model.name} requires enumeration of at most {MAX_ENUMERATED_RANKINGS:,} "
            f"rankings: {problem.n_items} items in {problem.n_positions} positions have more"
        )
    compiled = compile_problem(problem, rewards, click_model)
    values = np.array(  # (rankings, N)
        [[click_model.value(compiled, i, ranking) for i in range(problem.n_user_types)] for ranking in tried]
    )
    if utility is not None:
        totals = [utility.collective(problem.arrival_rates, row) for row in values]
        best = np.full(problem.n_user_types, np.argmax(totals))
    else:
        best = values.argmax(axis=0)
    return tried[best].astype(np.intp)
