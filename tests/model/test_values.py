from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import InvalidInputError, best_personalized_rankings, make_problem, user_type_values
from banditrank.model._rankings import as_ranking
from banditrank.model._values import best_personalized_values


@given(seed=st.integers(0, 10_000), family=st.sampled_from(["random", "conflict", "ties"]))
def test_no_ranking_beats_the_best_personalized_one(seed: int, family: str) -> None:
    problem = make_problem(family, n_user_types=2, n_items=5, n_positions=3, seed=seed)
    best = best_personalized_values(problem)
    values = [user_type_values(problem, ranking) for ranking in permutations(range(5), 3)]
    assert best == pytest.approx(np.max(values, axis=0), abs=1e-12)


def test_ties_go_to_the_lower_index() -> None:
    problem = make_problem("ties", n_user_types=1, n_items=12, n_positions=2, seed=0)
    ranking = best_personalized_rankings(problem)[0]
    means = problem.item_means[0]
    first = ranking[problem.position_preferences[0].argmax()]
    assert first == np.flatnonzero(means == means.max())[0]


@pytest.mark.parametrize(
    "items", [[0, 0], [0], [0, 5], [-1, 2], [0.5, 1.0], [[0, 1]], [[0], [1, 2]], "ab", None]
)
def test_invalid_rankings_are_rejected(items: list) -> None:
    with pytest.raises(InvalidInputError, match="ranking must"):
        as_ranking(items, n_items=5, n_positions=2)
