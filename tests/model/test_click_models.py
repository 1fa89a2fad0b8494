from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from banditrank import NASH, BetaRewards, InvalidInputError, Problem, SingleLook, kdd2012, make_problem
from banditrank.model._click_models import (
    CLICK_MODEL_NAMES,
    ClickModel,
    as_click_model,
    compile_problem,
    draw_user_type,
)
from banditrank.model._rewards import BernoulliRewards, as_rewards, draw_reward
from banditrank.solvers._optimum import best_values
from banditrank.testing._click_models import CLICK_MODEL_CHECKS


@pytest.mark.parametrize("name", [*CLICK_MODEL_NAMES, "dependent-click:0.9"])
@pytest.mark.parametrize("check", CLICK_MODEL_CHECKS, ids=lambda check: check.__name__)
def test_click_model_conforms(check: Callable[[ClickModel], None], name: str) -> None:
    check(as_click_model(name))


def test_positions_are_examined_independently() -> None:
    # Error rate: shares of 20,000 draws are off by 0.025 with probability below 2e-11 (Hoeffding).
    sure = Problem([1.0], [[0.2, 0.5, 0.3]], [[1.0, 1.0, 1.0]])  # clicks show what was examined
    drawn = _draws(as_click_model("position-based"), sure, [0, 1, 2])
    assert drawn.mean(axis=0) == pytest.approx([0.4, 1.0, 0.6], abs=0.025)
    assert (drawn[:, 0] * drawn[:, 2]).mean() == pytest.approx(0.24, abs=0.025)


def test_a_cascade_scans_by_preference_and_ends_with_the_first_click() -> None:
    # Error rate: as above.
    problem = Problem([1.0], [[0.2, 0.5, 0.3]], [[0.3, 0.6, 0.5]])  # scans position 2, then 3, then 1
    drawn = _draws(as_click_model("cascade"), problem, [0, 1, 2])
    assert drawn.sum(axis=1).max() == 1
    assert drawn.mean(axis=0) == pytest.approx([0.4 * 0.5 * 0.3, 0.6, 0.4 * 0.5], abs=0.025)


def test_dependent_clicks_continue_until_the_user_is_satisfied() -> None:
    # Error rate: as above.
    problem = Problem([1.0], [[0.5, 0.3, 0.2]], [[0.6, 0.5, 0.3]])
    drawn = _draws(as_click_model("dependent-click:0.25"), problem, [0, 1, 2])
    after_one = 1 - 0.25 * 0.6
    assert drawn.mean(axis=0) == pytest.approx(
        [0.6, after_one * 0.5, after_one * (1 - 0.25 * 0.5) * 0.3], abs=0.025
    )


@pytest.mark.parametrize("name", CLICK_MODEL_NAMES)
@pytest.mark.parametrize("equal", [False, True])
def test_best_rankings_match_enumeration(name: str, equal: bool) -> None:  # noqa: FBT001
    problem = make_problem("conflict", n_user_types=2, n_items=5, n_positions=3, seed=8)
    model = as_click_model(name)
    compiled = compile_problem(problem, click_model=model)
    every = [np.array(items, dtype=np.uintp) for items in permutations(range(5), 3)]
    values = np.array([[model.value(compiled, i, ranking) for i in range(2)] for ranking in every])
    best = best_values(problem, equal=equal, utility=NASH, click_model=model)
    if equal:
        assert best == pytest.approx(max(NASH.collective(problem.arrival_rates, row) for row in values))
    else:
        assert best == pytest.approx(values.max(axis=0))


@pytest.mark.parametrize(
    "text", ["cascades", "dependent-click:0", "dependent-click:x", "cascade:1", "dependent-click:nan"]
)
def test_an_invalid_click_model_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"click model|satisfaction"):
        as_click_model(text)


def _draws(click_model: ClickModel, problem: Problem, ranking: list[int]) -> np.ndarray:
    rng = np.random.default_rng(4)
    compiled = compile_problem(problem, click_model=click_model)
    drawn = np.zeros((20_000, len(ranking)))
    for row in drawn:
        click_model.draw(compiled, 0, np.array(ranking, dtype=np.uintp), rng, row)
    return drawn


def test_single_look_examines_one_position_by_preference() -> None:
    # Error rate: a share of 20,000 draws is off by 0.025 with probability below 2e-11 (Hoeffding).
    compiled = compile_problem(kdd2012(), BetaRewards())  # graded rewards show where the user looked
    rng = np.random.default_rng(0)
    rewards = np.zeros(2)
    looked = np.zeros(2)
    for _ in range(20_000):
        SingleLook.draw(compiled, 0, np.array([2, 3], dtype=np.uintp), rng, rewards)
        assert (rewards > 0).sum() == 1
        looked += rewards > 0
    assert looked / 20_000 == pytest.approx([0.323, 0.677], abs=0.025)


def test_user_types_arrive_at_their_rates() -> None:
    # Error rate: as above.
    compiled = compile_problem(kdd2012())
    rng = np.random.default_rng(1)
    share = np.mean([draw_user_type(compiled, rng.random()) for _ in range(20_000)])
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
    assert as_rewards("bernoulli") == BernoulliRewards()
    assert as_rewards(str(BetaRewards(3, 2))) == BetaRewards(3, 2)
    for text in ("gamma", "beta:x", "beta:0", "beta:1:2:3", "bernoulli:1", "beta:nan"):
        with pytest.raises(InvalidInputError, match="rewards"):
            as_rewards(text)
