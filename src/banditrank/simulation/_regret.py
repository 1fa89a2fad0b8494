"""Regret of rankings under personalized and equal treatment, as the paper defines it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.model._problem import Problem
from banditrank.model._values import best_personalized_values, user_type_values
from banditrank.solvers._solve import best_equal_ranking, equal_value
from banditrank.utilities._utility import UTILITARIAN, Utility

Floats = NDArray[np.float64]


def personalized_regret(problem: Problem, user_types: Sequence[int], rankings: Sequence[ArrayLike]) -> Floats:
    """Return the cumulative regret of personalized treatment, shape (t,).

    The regret of a round is the best value of the user type that arrived, minus the value of its ranking.

    Parameters
    ----------
    problem
        The problem.
    user_types
        User type of each round.
    rankings
        Ranking of each round, shape (K,) each.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> personalized_regret(kdd2012(), [0, 1], [[2, 3], [2, 3]]).round(6)
    array([0.      , 0.000168])
    """
    best = best_personalized_values(problem)
    gaps = [
        best[user_type] - user_type_values(problem, ranking)[user_type]
        for user_type, ranking in zip(user_types, rankings, strict=True)
    ]
    return np.cumsum(gaps)


def equal_regret(problem: Problem, rankings: Sequence[ArrayLike], utility: Utility = UTILITARIAN) -> Floats:
    """Return the cumulative regret of equal treatment, shape (t,): t Γ(σ*) − Σ_s Γ(σ_s).

    Parameters
    ----------
    problem
        The problem.
    rankings
        Ranking of each round, shape (K,) each.
    utility
        f of the collective utility Γ.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> equal_regret(kdd2012(), [[2, 3], [3, 2]]).round(6)
    array([0.      , 0.037472])
    """
    best = equal_value(problem, best_equal_ranking(problem, utility), utility)
    return np.cumsum([best - equal_value(problem, ranking, utility) for ranking in rankings])
