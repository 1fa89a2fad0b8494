"""Conformance suite for click models: every model must pass all `CLICK_MODEL_CHECKS`."""

import ctypes
from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.model._bound_click_model import BoundClickModel
from banditrank.model._click_models import ClickModel, CompiledProblem, compile_problem
from banditrank.model._generators import make_problem
from banditrank.model._rewards import BernoulliRewards, BetaRewards, Rewards
from banditrank.testing._leaks import assert_no_leaks

N_DRAWS = 40_000
MAX_ERROR = 6.0  # standard errors; a mean differs by more with probability below 2e-9


def check_mean_reward_is_the_value(click_model: ClickModel) -> None:
    """Check that the mean reward of many users is the value of the ranking."""
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=3, seed=3)
    families: tuple[Rewards, ...] = (BernoulliRewards(), BetaRewards(2.0, 3.0))
    for rewards in families:
        compiled = compile_problem(problem, rewards, click_model)
        for user_type in range(2):
            ranking = np.array([2, 0, 3], dtype=np.uintp)
            totals = _draws(click_model, compiled, user_type, ranking).sum(axis=1)
            error = abs(totals.mean() - click_model.value(compiled, user_type, ranking))
            assert error <= MAX_ERROR * totals.std() / np.sqrt(N_DRAWS), (
                f"{rewards}: the mean differs by {error}"
            )


def check_rewards_are_in_range(click_model: ClickModel) -> None:
    """Check that no reward is negative or above the scale."""
    problem = make_problem("random", n_user_types=1, n_items=3, n_positions=3, seed=5)
    compiled = compile_problem(problem, BetaRewards(0.5, 2.0), click_model)
    drawn = _draws(click_model, compiled, 0, np.array([1, 2, 0], dtype=np.uintp))
    assert drawn.min() >= 0
    assert drawn.max() <= 2


def check_value_is_deterministic(click_model: ClickModel) -> None:
    """Check that the value of a ranking is the same in each call, and within the scale of the rewards."""
    problem = make_problem("conflict", n_user_types=2, n_items=4, n_positions=2, seed=1)
    compiled = compile_problem(problem, click_model=click_model)
    for items in permutations(range(4), 2):
        ranking = np.array(items, dtype=np.uintp)
        first, second = (click_model.value(compiled, 1, ranking) for _ in range(2))
        assert first == second
        assert 0 <= first <= problem.n_positions


def check_no_leaks(click_model: ClickModel) -> None:
    """Check that the compiled functions leak neither references to their arguments nor memory."""
    problem = make_problem("random", n_user_types=2, n_items=4, n_positions=3, seed=3)
    compiled, rng = compile_problem(problem, BetaRewards(2.0, 3.0), click_model), np.random.default_rng(7)
    ranking, rewards = np.array([2, 0, 3], dtype=np.uintp), np.zeros(3)
    assert_no_leaks(
        lambda: click_model.draw(compiled, 1, ranking, rng, rewards), compiled, ranking, rng, rewards
    )
    assert_no_leaks(lambda: click_model.value(compiled, 1, ranking), compiled, ranking)


def _draws(
    click_model: ClickModel, compiled: CompiledProblem, user_type: int, ranking: NDArray[np.uintp]
) -> NDArray[np.float64]:
    """Return the rewards of independent users, shape (`N_DRAWS`, K); drawn by address, which is faster."""
    rewards, drawn = np.zeros(len(ranking)), np.zeros((N_DRAWS, len(ranking)))
    bound = BoundClickModel(
        click_model, compiled, np.random.default_rng(17), ranking=ranking, rewards=rewards
    )
    draw = _NATIVE_FUNCTION(bound.handle.draw_function)
    for row in drawn:
        draw(bound.handle.arguments, user_type, 0)
        row[:] = rewards
    return drawn


_NATIVE_FUNCTION = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 3)


CLICK_MODEL_CHECKS: tuple[Callable[[ClickModel], None], ...] = (
    check_mean_reward_is_the_value,
    check_rewards_are_in_range,
    check_value_is_deterministic,
    check_no_leaks,
)
"""Checks that every click model must pass; each takes a `ClickModel`."""
