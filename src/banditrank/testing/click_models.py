"""What every click model must satisfy. A new model proves itself by going through `CLICK_MODEL_CHECKS`."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.model.click_models import ClickModel, compile_problem
from banditrank.model.generators import make_problem
from banditrank.model.rewards import BernoulliRewards, BetaRewards, Rewards
from banditrank.testing.leaks import assert_no_leaks

DRAWS = 40_000
WIDTH = 6.0  # standard errors; a mean is farther off with probability below 2e-9


def check_rewards_average_to_the_value(click_model: ClickModel) -> None:
    """The rewards of many users average to the value that the model states."""
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=3, seed=3)
    families: tuple[Rewards, ...] = (BernoulliRewards(), BetaRewards(2.0, 3.0))
    for rewards in families:
        world = compile_problem(problem, rewards, click_model)
        for user_type in range(2):
            ranking = np.array([2, 0, 3], dtype=np.uintp)
            totals = _draws(click_model, world, user_type, ranking).sum(axis=1)
            error = abs(totals.mean() - click_model.value(world, user_type, ranking))
            assert error <= WIDTH * totals.std() / np.sqrt(DRAWS), f"{rewards}: the mean is off by {error}"


def check_rewards_lie_in_range(click_model: ClickModel) -> None:
    """No reward is negative or above the scale."""
    problem = make_problem("random", n_user_types=1, n_items=3, n_positions=3, seed=5)
    world = compile_problem(problem, BetaRewards(0.5, 2.0), click_model)
    drawn = _draws(click_model, world, 0, np.array([1, 2, 0], dtype=np.uintp))
    assert drawn.min() >= 0
    assert drawn.max() <= 2


def check_value_depends_on_the_ranking_only(click_model: ClickModel) -> None:
    """A value is a number for each type and ranking, the same each time, within the scale of the rewards."""
    problem = make_problem("conflict", n_user_types=2, n_items=4, n_positions=2, seed=1)
    world = compile_problem(problem, click_model=click_model)
    for items in permutations(range(4), 2):
        ranking = np.array(items, dtype=np.uintp)
        first, second = (click_model.value(world, 1, ranking) for _ in range(2))
        assert first == second
        assert 0 <= first <= problem.n_positions


def check_calls_leak_nothing(click_model: ClickModel) -> None:
    """Both formulas leave references to their arguments and memory as they were."""
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=3, seed=3)
    world, rng = compile_problem(problem, BetaRewards(2.0, 3.0), click_model), np.random.default_rng(7)
    ranking, rewards = np.array([2, 0, 3], dtype=np.uintp), np.zeros(3)
    assert_no_leaks(lambda: click_model.draw(world, 1, ranking, rng, rewards), world, ranking, rng, rewards)
    assert_no_leaks(lambda: click_model.value(world, 1, ranking), world, ranking)


def _draws(
    click_model: ClickModel, world: object, user_type: int, ranking: NDArray[np.uintp]
) -> NDArray[np.float64]:
    rng = np.random.default_rng(17)
    drawn = np.zeros((DRAWS, len(ranking)))
    for row in drawn:
        click_model.draw(world, user_type, ranking, rng, row)
    return drawn


CLICK_MODEL_CHECKS: tuple[Callable[[ClickModel], None], ...] = (
    check_rewards_average_to_the_value,
    check_rewards_lie_in_range,
    check_value_depends_on_the_ranking_only,
    check_calls_leak_nothing,
)
