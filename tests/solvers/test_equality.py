import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import Problem, equality_report, kdd2012, make_problem, solve
from banditrank.model._generators import FAMILIES


@given(family=st.sampled_from(sorted(FAMILIES)), seed=st.integers(0, 10**6))
def test_no_ranking_exceeds_a_type_s_personalized_value(family: str, seed: int) -> None:
    problem = make_problem(family, n_user_types=3, n_items=6, n_positions=3, seed=seed)
    ranking = np.random.default_rng(seed).permutation(6)[:3]
    report = equality_report(problem, ranking)
    values = (problem.position_preferences * problem.item_means[:, ranking]).sum(axis=1)
    looks, likes = (np.sort(table)[:, :-4:-1] for table in (problem.position_preferences, problem.item_means))
    own = (looks * likes).sum(axis=1)  # what is liked most where she looks most
    assert report.user_type_values == pytest.approx(values)
    assert report.personalized_values == pytest.approx(own)
    assert report.shares_lost == pytest.approx(1 - values / own, abs=1e-12)
    total, best = problem.arrival_rates @ values, problem.arrival_rates @ own
    assert report.price_of_equality == pytest.approx(1 - total / best, abs=1e-12)
    assert report.price_of_equality >= equality_report(problem, solve(problem).ranking).price_of_equality


def test_equality_is_free_for_a_single_type() -> None:
    problem = make_problem("random", n_user_types=1, n_items=6, n_positions=3, seed=1)
    report = equality_report(problem, solve(problem).ranking)
    assert report.price_of_equality == pytest.approx(0, abs=1e-12)


def test_a_type_without_value_loses_nothing() -> None:
    problem = Problem([0.5, 0.5], [[1.0], [1.0]], [[0.0, 0.0], [0.8, 0.4]])
    report = equality_report(problem, [1])
    assert report.shares_lost.tolist() == [0.0, 0.5]
    assert (report.worst_type, report.worst, report.price_of_equality) == (0, 0.0, 0.5)
    empty = equality_report(Problem([1.0], [[1.0]], [[0.0]]), [0])
    assert empty.price_of_equality == 0


def test_values_are_those_of_the_solution_and_read_only() -> None:
    solution = solve(kdd2012(), "nash")
    report = equality_report(kdd2012(), solution.ranking)
    assert report.user_type_values == pytest.approx(solution.user_type_values)
    with pytest.raises(ValueError, match="read-only"):
        report.personalized_values[0] = 1
