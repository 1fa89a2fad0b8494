import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import (
    Problem,
    equality_report,
    kdd2012,
    make_problem,
    pareto_frontier,
    simulate,
    solve,
    solve_lottery,
)
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


def test_values_are_clicks_per_visit() -> None:
    """Finding 6: solvers and reports multiply values by the click scale of a problem, simulations do not."""
    plain = kdd2012()
    scaled = Problem(**{**plain.to_dict(), "click_scale": 2.5})
    for utility in ("utilitarian", "maximin"):
        unscaled, other = solve(plain, utility), solve(scaled, utility)
        assert (other.ranking == unscaled.ranking).all()
        assert [other.value, other.upper_bound] == pytest.approx(
            [2.5 * unscaled.value, 2.5 * unscaled.upper_bound]
        )
        lottery = solve_lottery(scaled, utility)
        assert lottery.value == pytest.approx(2.5 * solve_lottery(plain, utility).value)
    assert solve(scaled, "nash").value == pytest.approx(solve(plain, "nash").value + np.log(2.5))
    points, others = pareto_frontier(scaled, alphas=[1]), pareto_frontier(plain, alphas=[1])
    for point, unscaled in zip(points, others, strict=True):
        assert point.total == pytest.approx(2.5 * unscaled.total)
        assert point.lottery_worst == pytest.approx(2.5 * unscaled.lottery_worst)
        assert point.price_of_equality == pytest.approx(unscaled.price_of_equality)
        assert point.equality.user_type_values == pytest.approx(point.solution.user_type_values)
    runs = [simulate("random", problem, 50, 2, seed=1) for problem in (plain, scaled)]
    assert (runs[0].regret == runs[1].regret).all()


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
