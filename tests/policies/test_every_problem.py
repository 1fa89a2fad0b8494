"""Every policy runs on every kind of problem, and results report violated assumptions."""

from typing import Any

import numpy as np
import pytest

from banditrank.model._changes import CHANGES, make_timeline
from banditrank.model._click_models import CLICK_MODEL_NAMES, as_click_model
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, BetaRewards
from banditrank.model._timeline import Timeline
from banditrank.policies._base import Policy, Treatment
from banditrank.policies._catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy
from banditrank.policies._violated_assumptions import violated_assumptions
from banditrank.simulation._simulate import simulate

HORIZON = 300
IN_ORDER = Problem(
    [0.4, 0.6], [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]], [[0.1, 0.8, 0.4, 0.6, 0.3], [0.7, 0.2, 0.9, 0.1, 0.5]]
)
ODD = Problem([0.4, 0.6], [[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]], IN_ORDER.item_means)  # in no order of numbers

# A loop is compiled for each policy and click model, so each policy runs with one click model throughout: one
# that it does not assume, if there is any.
OTHER_MODEL = {
    **dict.fromkeys(("auto", "thompson-rank", "type-blind-thompson-rank"), "cascade"),
    **dict.fromkeys(("type-blind-ucb", "pb-mhb", "comb-ucb1", "random"), "cascade"),
    **dict.fromkeys(("greedy-rank", "ucb-rank", "oracle"), "position-based"),
    **dict.fromkeys(("cascade-kl-ucb", "cascade-ts", "uni-rank", "ranked-bandits", "grab"), "single-look"),
}
USERS = {
    name: as_click_model(OTHER_MODEL.get(name.removesuffix("-ordered"), "dependent-click"))
    for name in POLICY_NAMES
}

# Of all changes, policies notice only added and removed items.
UNNOTICED = [kind for kind in CHANGES if kind != "turnover"]
CHANGES_MET = [
    (name, kind)
    for number, name in enumerate(POLICY_NAMES)
    for kind in ("turnover", UNNOTICED[number % len(UNNOTICED)])
]

PAIRS = (
    (("window:80", "personalized"), ("discount:80", "equal")),
    (("window:80", "equal"), ("discount:80", "personalized")),
)
"""Memories and treatments of every other policy."""


def check_run(policy: Policy, problem: Problem | Timeline, **settings: Any) -> None:
    """Check that two runs are equal, and that the regret of each round is between 0 and K."""
    first, second = (
        simulate(policy, problem, HORIZON, 2, seed=3, workers=1, checkpoints=range(1, HORIZON), **settings)
        for _ in range(2)
    )
    assert np.array_equal(first.regret, second.regret)
    assert not np.array_equal(first.regret[0], first.regret[1]) or policy.name == "oracle"
    lost = np.diff(first.regret, axis=1, prepend=0.0)  # each round
    assert lost.min() >= -1e-9
    assert lost.max() <= problem.n_positions  # a click on everything


def test_every_click_model_is_used() -> None:
    assert {model.name for model in USERS.values()} == set(CLICK_MODEL_NAMES)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_policy_runs_with_click_models_that_it_does_not_assume(name: str) -> None:
    policy = make_policy(name, ODD, click_model=USERS[name], horizon=HORIZON)
    check_run(policy, ODD, click_model=USERS[name])


@pytest.mark.parametrize(("name", "changes"), CHANGES_MET)
def test_every_policy_runs_on_changing_problems(name: str, changes: str) -> None:
    policy = make_policy(name, ODD, click_model=USERS[name], horizon=HORIZON)
    check_run(policy, make_timeline(ODD, f"{changes}:3", HORIZON), click_model=USERS[name])


# Every policy with each memory and each treatment; with the other two pairs of them in depth.
@pytest.mark.parametrize(
    ("name", "memory", "treatment"),
    [
        pytest.param(name, memory, treatment, marks=() if is_short else pytest.mark.campaign)
        for number, name in enumerate([*BASELINES, *ORDERED_POLICY_NAMES])
        for memory in ("window:80", "discount:80")
        for treatment in ("personalized", "equal")
        for is_short in [((memory, treatment) in PAIRS[number % 2])]
    ],
)
def test_every_policy_forgets(name: str, memory: str, treatment: Treatment) -> None:
    problem = make_timeline(ODD, "turnover:2", HORIZON)
    policy = make_policy(
        name, ODD, treatment=treatment, memory=memory, click_model=USERS[name], horizon=HORIZON
    )
    check_run(policy, problem, click_model=USERS[name])


@pytest.mark.parametrize("name", ["pbm-ucb", "uni-rank"])  # learns from counts; from statistics of its own
@pytest.mark.parametrize("delay", [1, 70, 2 * HORIZON])
def test_rewards_may_come_late(name: str, delay: int) -> None:
    for problem in (ODD, make_timeline(ODD, "turnover:2", HORIZON)):
        check_run(make_policy(name, ODD), problem, delay=delay)


def said(
    policy: Policy, problem: Problem | Timeline, model: str = "single-look", **settings: Any
) -> list[str]:
    sentences = violated_assumptions(
        policy, problem, **{"rewards": BernoulliRewards(), "click_model": as_click_model(model), **settings}
    )
    assert all(sentence.startswith(f"{policy.name} ") for sentence in sentences)
    return [sentence.removeprefix(f"{policy.name} ") for sentence in sentences]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("model", CLICK_MODEL_NAMES)
def test_a_violated_click_model_is_named(name: str, model: str) -> None:
    policy = make_policy(name, IN_ORDER, click_model=as_click_model(model))
    made_for = policy.assumptions.click_models
    expected = [f"assumes {' or '.join(made_for)} clicks, not {model}."]
    assert said(policy, IN_ORDER, model) == ([] if model in made_for else expected)


def test_sentences() -> None:
    wrong_order = "assumes that positions are examined in the order 1 > 2 > 3, unlike user type type-1."
    assert said(make_policy("top-rank", ODD), ODD) == [wrong_order]
    assert said(make_policy("top-rank-ordered", ODD), ODD) == []
    told = make_policy("pbm-ts", IN_ORDER)
    mistaken = "was given other examination probabilities than those of every user type."
    assert said(told, ODD) == [mistaken]
    assert said(make_policy("pbm-ts", ODD, treatment="equal"), ODD) == [mistaken]  # told their average
    restless = "assumes that the problem does not change."
    jumps, fresh_items = (
        make_timeline(IN_ORDER, f"{kind}:2", HORIZON) for kind in ("item-jumps", "turnover")
    )
    assert said(told, jumps) == [restless]
    assert said(told, fresh_items) == []
    assert said(make_policy("pbm-ts", IN_ORDER, memory="window:80"), jumps) == []
    assert said(told, IN_ORDER, rewards=BetaRewards(5.0)) == ["assumes clicks, not rewards beta:5:1."]
    assert said(make_policy("pbm-ucb", IN_ORDER), IN_ORDER, rewards=BetaRewards(5.0)) == []
    fair = make_policy("grab", IN_ORDER, treatment="equal", utility="nash")
    assert said(fair, IN_ORDER, "position-based") == ["maximises clicks, not nash utility."]
