from collections.abc import Callable

import numpy as np
import pytest

from banditrank import Beta, InvalidInputError, SingleLook, kdd2012
from banditrank.model.click_models import ClickModel, draw_user_type, make_world
from banditrank.model.rewards import Bernoulli, draw_reward, find_rewards
from banditrank.testing.click_models import CLICK_MODEL_CHECKS


@pytest.mark.parametrize("check", CLICK_MODEL_CHECKS, ids=lambda check: check.__name__)
def test_single_look_conforms(check: Callable[[ClickModel], None]) -> None:
    check(SingleLook())


def test_single_look_clicks_at_most_once_and_looks_where_users_do() -> None:
    # Error rate: a share of 20,000 draws is off by 0.025 with probability below 2e-11 (Hoeffding).
    world = make_world(kdd2012(), Beta())  # graded rewards show where the user looked
    rng = np.random.default_rng(0)
    rewards = np.zeros(2)
    looked = np.zeros(2)
    for _ in range(20_000):
        SingleLook.draw(world, 0, np.array([2, 3], dtype=np.uintp), rng, rewards)
        assert (rewards > 0).sum() == 1
        looked += rewards > 0
    assert looked / 20_000 == pytest.approx([0.323, 0.677], abs=0.025)


def test_user_types_arrive_at_their_rates() -> None:
    # Error rate: as above.
    world = make_world(kdd2012())
    rng = np.random.default_rng(1)
    share = np.mean([draw_user_type(world, rng.random()) for _ in range(20_000)])
    assert share == pytest.approx(0.48, abs=0.025)


@pytest.mark.parametrize(("mean", "reward"), [(0.0, 0.0), (1.0, 2.0)])
def test_certain_rewards_are_certain(mean: float, reward: float) -> None:
    rng = np.random.default_rng(0)
    assert {draw_reward(mean, 3.0, 2.0, rng) for _ in range(50)} == {reward}
    assert {draw_reward(mean, 0.0, 2.0, rng) for _ in range(50)} == {reward}


def test_beta_rewards_have_the_stated_mean_and_variance() -> None:
    # Error rate: 6 standard errors, below 2e-9.
    rng = np.random.default_rng(2)
    drawn = np.array([draw_reward(0.3, 4.0, 2.0, rng) for _ in range(40_000)])
    assert drawn.mean() == pytest.approx(0.6, abs=6 * drawn.std() / 200)
    assert drawn.var() == pytest.approx(4 * 0.3 * 0.7 / 5, rel=0.05)


def test_rewards_by_name() -> None:
    assert find_rewards("bernoulli") == Bernoulli()
    assert find_rewards(str(Beta(3, 2))) == Beta(3, 2)
    for text in ("gamma", "beta:x", "beta:0", "beta:1:2:3", "bernoulli:1", "beta:nan"):
        with pytest.raises(InvalidInputError, match="rewards"):
            find_rewards(text)
