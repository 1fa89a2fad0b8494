"""The problems of the demo show the price of equality, and regret is computed correctly."""

import numpy as np
import pytest

from banditrank import kdd2012, solve
from banditrank._demo.regret_tracker import UNKNOWN_ITEM, RegretTracker
from banditrank._demo.surfaces import DemoSurface, home_carousel, search_ads
from banditrank.model._values import best_personalized_rankings, user_type_values
from banditrank.simulation._regret import equal_regret, personalized_regret
from banditrank.solvers._equality import equality_report
from banditrank.utilities._utility import NASH


def test_the_personalized_surface_is_the_papers_table_1() -> None:
    assert search_ads().problem == kdd2012()


def test_equality_has_a_price_and_so_has_the_utility() -> None:
    problem = home_carousel().problem
    fair, total = (solve(problem, utility).ranking for utility in ("nash", "utilitarian"))
    reports = {"nash": equality_report(problem, fair), "utilitarian": equality_report(problem, total)}
    # The figures of docs/tutorials/demo.md.
    assert reports["nash"].price_of_equality == pytest.approx(0.21, abs=0.005)
    assert reports["utilitarian"].price_of_equality == pytest.approx(0.15, abs=0.005)
    worst = {
        name: user_type_values(problem, ranking).min() for name, ranking in (("fair", fair), ("total", total))
    }
    assert worst["fair"] > 2 * worst["total"]
    assert (worst["fair"], worst["total"]) == (
        pytest.approx(0.39),
        pytest.approx(0.14),
    )
    favourites = best_personalized_rankings(problem)
    assert len({tuple(ranking) for ranking in favourites}) == problem.n_user_types


@pytest.mark.parametrize("surface", [search_ads(), home_carousel()], ids=lambda surface: surface.name)
def test_regret_is_that_of_the_simulator(surface: DemoSurface) -> None:
    rng = np.random.default_rng(1)
    problem, tracker = surface.problem, RegretTracker(surface)
    types = rng.choice(problem.n_user_types, size=50, p=problem.arrival_rates).tolist()
    rankings = [rng.permutation(problem.n_items)[: problem.n_positions].tolist() for _ in types]
    for user_type, ranking in zip(types, rankings, strict=True):
        tracker.record(user_type, ranking, clicked=user_type == 0)
    expected = (
        equal_regret(problem, rankings, NASH)
        if surface.treatment == "equal"
        else personalized_regret(problem, types, rankings)
    )
    assert tracker.regret == pytest.approx(expected[-1])
    assert (tracker.visits, tracker.clicks) == (50, types.count(0))
    assert tracker.recent_click_rate == tracker.clicks / 50


def test_the_best_rankings_are_better_than_random_ones() -> None:
    tracker = RegretTracker(search_ads())
    assert tracker.optimal_click_rate == pytest.approx(0.52 * 0.742108 + 0.48 * 0.490584)
    assert tracker.random_click_rate == pytest.approx(0.52 * 0.5608 + 0.48 * 0.3716)


def test_an_unknown_item_has_value_zero() -> None:
    tracker = RegretTracker(search_ads())
    assert tracker.true_values([UNKNOWN_ITEM, 3]) == pytest.approx([0.677 * 0.808, 0.584 * 0.49])
