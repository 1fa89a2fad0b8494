"""What rankings are worth when everything is known."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank.model.known import ProblemLike
from banditrank.model.problem import Problem
from banditrank.model.rankings import as_ranking


def user_type_values(problem: Problem, ranking: ArrayLike) -> NDArray[np.float64]:
    """Return the chance of a click of each user type, u_i = Σ_k ρ_ik μ_i,σ(k), shape (N,).

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> user_type_values(kdd2012(), [2, 3])
    array([0.742108, 0.490416])
    """
    return weighted_means(problem.position_preferences, problem.item_means, ranking)


def weighted_means(
    preferences: NDArray[np.float64], means: NDArray[np.float64], ranking: ArrayLike
) -> NDArray[np.float64]:
    """Return Σ_k ρ_ik μ_i,σ(k), shape (N,), for known or estimated ρ (N, K) and μ (N, M)."""
    shown = as_ranking(np.asarray(ranking), n_items=means.shape[1], n_positions=preferences.shape[1])
    values: NDArray[np.float64] = np.einsum("ik,ik->i", preferences, means[:, shown])
    return values


def best_personalized_rankings(known: ProblemLike) -> NDArray[np.intp]:
    """Return each user type's best ranking, known or estimated, shape (N, K): best item to best position.

    Ties go to the lower number.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> best_personalized_rankings(kdd2012())
    array([[2, 3],
           [3, 2]])
    """
    positions = np.argsort(-known.position_preferences, axis=1, kind="stable")  # (N, K)
    items = np.argsort(-known.item_means, axis=1, kind="stable")[:, : positions.shape[1]]
    rankings = np.empty_like(positions)
    np.put_along_axis(rankings, positions, items, axis=1)
    return rankings


def best_personalized_values(problem: Problem) -> NDArray[np.float64]:
    """Return what personalized treatment is worth to each user type, shape (N,)."""
    rankings = best_personalized_rankings(problem)
    return np.array([user_type_values(problem, ranking)[i] for i, ranking in enumerate(rankings)])
