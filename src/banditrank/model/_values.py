"""Values of rankings, and best personalized rankings."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.model._problem import Problem, ProblemLike
from banditrank.model._rankings import as_ranking


def user_type_values(problem: ProblemLike, ranking: ArrayLike) -> NDArray[np.float64]:
    """Return each user type's click probability, u_i = Σ_k ρ_ik μ_i,σ(k), shape (N,).

    Raises
    ------
    InvalidInputError
        If the ranking is not K different items.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> user_type_values(kdd2012(), [2, 3])
    array([0.742108, 0.490416])
    """
    return weighted_means(problem.position_preferences, problem.item_means, ranking)


def click_scale(problem: ProblemLike) -> float:
    """Return the clicks per visit of a ranking of value 1: that of a `Problem`, 1 for estimates."""
    return problem.click_scale if isinstance(problem, Problem) else 1.0


def weighted_means(
    preferences: NDArray[np.float64], means: NDArray[np.float64], ranking: ArrayLike
) -> NDArray[np.float64]:
    """Return Σ_k ρ_ik μ_i,σ(k), shape (N,), for ρ of shape (N, K) and μ of shape (N, M).

    Raises
    ------
    InvalidInputError
        If the ranking is not K different items.
    """
    items = as_ranking(np.asarray(ranking), n_items=means.shape[1], n_positions=preferences.shape[1])
    values: NDArray[np.float64] = np.einsum("ik,ik->i", preferences, means[:, items])
    return values


def best_personalized_rankings(problem: ProblemLike) -> NDArray[np.intp]:
    """Return each user type's best ranking, shape (N, K): the best item at the best position, and so on.

    Ties go to the lower index.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> best_personalized_rankings(kdd2012())
    array([[2, 3],
           [3, 2]])
    """
    positions = np.argsort(-problem.position_preferences, axis=1, kind="stable")  # (N, K)
    items = np.argsort(-problem.item_means, axis=1, kind="stable")[:, : positions.shape[1]]
    rankings = np.empty_like(positions)
    np.put_along_axis(rankings, positions, items, axis=1)
    return rankings


def best_personalized_values(problem: ProblemLike) -> NDArray[np.float64]:
    """Return each user type's value under personalized treatment, shape (N,)."""
    rankings = best_personalized_rankings(problem)
    return np.array([user_type_values(problem, ranking)[i] for i, ranking in enumerate(rankings)])
