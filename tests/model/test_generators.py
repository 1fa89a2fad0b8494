import numpy as np
import pytest

from banditrank import InvalidInputError, make_problem
from banditrank.model._generators import FAMILIES, exponential_bonuses

SIZE = {"n_user_types": 3, "n_items": 20, "n_positions": 4}


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_seed_determines_the_problem(family: str) -> None:
    assert make_problem(family, **SIZE, seed=1) == make_problem(family, **SIZE, seed=1)
    assert make_problem(family, **SIZE, seed=1) != make_problem(family, **SIZE, seed=2)


def test_conflict_gives_each_item_one_favourite_type() -> None:
    means = make_problem("conflict", **SIZE, seed=4).item_means
    assert ((means >= 0.6).sum(axis=0) == 1).all()
    assert ((means <= 0.15).sum(axis=0) == 2).all()


def test_ties_round_means_and_share_positions() -> None:
    problem = make_problem("ties", **SIZE, seed=4)
    assert (problem.item_means == problem.item_means.round(1)).all()
    assert (problem.position_preferences == problem.position_preferences[0]).all()


def test_common_log_discounts_like_dcg() -> None:
    attention = make_problem("common-log", **SIZE, seed=0).position_preferences[0]
    assert attention / attention[0] == pytest.approx([1 / np.log2(k + 1) for k in (1, 2, 3, 4)])


def test_the_synthetic_problem_is_the_documented_one() -> None:
    rng = np.random.default_rng(0)
    means = rng.uniform(0.05, 0.95, (3, 20))
    preferences = rng.dirichlet(np.ones(4), 3)
    rates = rng.dirichlet(np.ones(3) * 5)
    problem = make_problem("synthetic", **SIZE, seed=0)
    assert np.array_equal(problem.item_means, means)
    assert np.array_equal(problem.position_preferences, preferences)
    assert np.array_equal(problem.arrival_rates, rates)


def test_bonuses_are_exponential() -> None:
    assert exponential_bonuses(100_000, seed=1).mean() == pytest.approx(0.05, rel=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_positions": 21}, "number of positions must not exceed the 20 items, got 21"),
        ({"n_items": 0}, "number of items must be a whole number from 1 to 100,000, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_impossible_sizes_are_rejected(change: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_problem("random", **{**SIZE, "seed": 0, **change})


def test_an_unknown_family_suggests_the_closest_name() -> None:
    with pytest.raises(InvalidInputError, match=r"did you mean conflict\?"):
        make_problem("conflicts", **SIZE, seed=0)
