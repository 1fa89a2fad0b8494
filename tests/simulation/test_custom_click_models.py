"""Custom click models: regret is measured against the best rankings under the model."""

from typing import ClassVar

import numpy as np
import pytest

from banditrank import (
    NASH,
    UTILITARIAN,
    ClickModel,
    Oracle,
    Problem,
    UCBRank,
    UniformRandom,
    UnsolvableError,
    make_problem,
    simulate,
)
from banditrank._compilation import inlined
from banditrank.testing._click_models import CLICK_MODEL_CHECKS


@inlined
def draw_cascade(problem, user_type, ranking, rng, rewards):  # noqa: ANN001, ANN201
    """The user goes down the list until she clicks; she starts with the first position."""
    going = True
    for position in range(ranking.size):
        clicked = going and rng.random() < problem.item_means[user_type, ranking[position]]
        rewards[position] = problem.scale if clicked else 0.0
        going = going and not clicked


@inlined
def cascade_value(problem, user_type, ranking):  # noqa: ANN001, ANN201
    missed = 1.0
    for position in range(ranking.size):
        missed *= 1.0 - problem.item_means[user_type, ranking[position]]
    return problem.scale * (1.0 - missed)


class Cascade(ClickModel):
    name: ClassVar[str] = "my-cascade"
    draw = staticmethod(draw_cascade)
    value = staticmethod(cascade_value)


PROBLEM = make_problem("conflict", n_user_types=2, n_items=5, n_positions=3, seed=3)
MODEL = Cascade()


@pytest.mark.parametrize("check", CLICK_MODEL_CHECKS, ids=lambda check: check.__name__)
def test_it_conforms(check) -> None:  # noqa: ANN001
    check(MODEL)


@pytest.mark.parametrize("treatment", ["personalized", pytest.param("equal", marks=pytest.mark.campaign)])
def test_regret_is_measured_against_the_models_own_optimum(treatment: str) -> None:
    aim = {"treatment": treatment, "utility": UTILITARIAN if treatment == "personalized" else NASH}
    settings = {"problem": PROBLEM, "horizon": 2000, "replications": 2, "seed": 1, "click_model": MODEL}
    oracle = simulate(Oracle(PROBLEM, click_model=MODEL, **aim), **settings)
    assert oracle.regret == pytest.approx(0.0, abs=1e-9)
    for policy in (UniformRandom(**aim), UCBRank(coefficient=0.5, **aim)):
        result = simulate(policy, **settings)
        assert (np.diff(result.regret, axis=1) >= -1e-9).all()
        assert result.final_regret.min() > 1
    assert oracle.click_model == "my-cascade"


def test_a_model_whose_optimum_would_take_too_long_is_refused() -> None:
    big = Problem([1.0], [[0.1] * 10], [[0.5] * 30])
    with pytest.raises(
        UnsolvableError, match="click model my-cascade requires enumeration of at most 1,000,000 rankings"
    ):
        simulate(UCBRank(coefficient=0.5), big, 100, 1, 0, click_model=MODEL)
