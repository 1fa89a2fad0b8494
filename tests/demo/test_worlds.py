"""What the demo is to show can be seen in its worlds, and what users bring is counted right."""

import numpy as np
import pytest

from banditrank import kdd2012, solve
from banditrank.demo.account import UNKNOWN_ITEM, Account
from banditrank.demo.surfaces import KnownSurface, home_carousel, search_ads
from banditrank.model.values import best_personalized_rankings, user_type_values
from banditrank.simulation.regret import equal_regret, personalized_regret
from banditrank.solvers.equality import equality_report
from banditrank.utilities.utility import NASH


def test_the_personalized_surface_is_the_papers_table_1() -> None:
    assert search_ads().world == kdd2012()


def test_equality_has_a_price_and_so_has_the_utility() -> None:
    world = home_carousel().world
    fair, total = (solve(world, utility).ranking for utility in ("nash", "utilitarian"))
    reports = {"nash": equality_report(world, fair), "utilitarian": equality_report(world, total)}
    assert reports["nash"].price_of_equality == pytest.approx(0.21, abs=0.005)  # as docs/demo.md says
    assert reports["utilitarian"].price_of_equality == pytest.approx(0.15, abs=0.005)
    worst = {
        name: user_type_values(world, ranking).min() for name, ranking in (("fair", fair), ("total", total))
    }
    assert worst["fair"] > 2 * worst["total"]
    assert (worst["fair"], worst["total"]) == (
        pytest.approx(0.39),
        pytest.approx(0.14),
    )  # as docs/demo.md says
    favourites = best_personalized_rankings(world)
    assert len({tuple(ranking) for ranking in favourites}) == world.n_user_types


@pytest.mark.parametrize("known", [search_ads(), home_carousel()], ids=lambda known: known.name)
def test_regret_is_that_of_the_simulator(known: KnownSurface) -> None:
    rng = np.random.default_rng(1)
    world, account = known.world, Account(known)
    types = rng.choice(world.n_user_types, size=50, p=world.arrival_rates).tolist()
    rankings = [rng.permutation(world.n_items)[: world.n_positions].tolist() for _ in types]
    for user_type, ranking in zip(types, rankings, strict=True):
        account.note(user_type, ranking, clicked=user_type == 0)
    wanted = (
        equal_regret(world, rankings, NASH)
        if known.treatment == "equal"
        else personalized_regret(world, types, rankings)
    )
    assert account.regret == pytest.approx(wanted[-1])
    assert (account.visits, account.clicks) == (50, types.count(0))
    assert account.latest_rate == account.clicks / 50


def test_the_best_is_better_than_random_order() -> None:
    account = Account(search_ads())
    assert account.optimum == pytest.approx(0.52 * 0.742108 + 0.48 * 0.490584)
    assert account.random == pytest.approx(0.52 * 0.5608 + 0.48 * 0.3716)


def test_an_item_that_the_world_does_not_know_is_worth_nothing() -> None:
    account = Account(search_ads())
    assert account.values([UNKNOWN_ITEM, 3]) == pytest.approx([0.677 * 0.808, 0.584 * 0.49])
