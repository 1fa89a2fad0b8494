"""Conformance of every baseline, with the prior knowledge that `make_policy` gives it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
from helpers.baseline_runs import play

from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy, Treatment
from banditrank.policies._catalog import BASELINES, ORDERED_POLICY_NAMES, make_policy
from banditrank.policies.baselines._ranked_bandits import RankedBandits
from banditrank.testing._policies import (
    POLICY_CHECKS,
    MakePolicy,
    check_equal_treatment_ignores_user_types,
    check_rankings_are_valid,
    check_relabelling_items,
    check_relabelling_user_types,
)

TREATMENTS = get_args(Treatment)


def ranked_bandits(_: Problem, bandit: str, treatment: Treatment) -> CompiledPolicy:
    return replace(RankedBandits(horizon=1000, treatment=treatment), bandit=bandit)


POLICIES: dict[str, MakePolicy] = {
    **{
        f"{name} {treatment}": partial(make_policy, name, treatment=treatment, horizon=1000)
        for name in (*BASELINES, *ORDERED_POLICY_NAMES)
        for treatment in TREATMENTS
    },
    **{
        f"ranked-bandits {bandit} {treatment}": partial(ranked_bandits, bandit=bandit, treatment=treatment)
        for bandit in ("kl-ucb", "exp3")
        for treatment in TREATMENTS
    },
}


# Policies with a given order differ from the plain ones in what they know of user types.
OF_ORDER = {check_rankings_are_valid, check_relabelling_user_types}
# Each draw takes a run of the optimiser or of the sampler.
SLOW = {"pmed personalized", "pb-mhb personalized"}
RELABELLING = {check_relabelling_items, check_relabelling_user_types}
# Baselines have no lotteries of their own: equal-lottery treatment is equal treatment.
OF_TREATMENT = {check_rankings_are_valid, check_equal_treatment_ignores_user_types}


def marks(name: str, check: Callable[[MakePolicy], None]) -> list[pytest.MarkDecorator]:
    is_slow = name in SLOW and check in RELABELLING
    is_again = name.endswith(" equal-lottery") and check not in OF_TREATMENT
    return [pytest.mark.campaign] if is_slow or is_again else []


CASES = [
    pytest.param(make_policy, check, id=f"{name}-{check.__name__}", marks=marks(name, check))
    for name, make_policy in POLICIES.items()
    for check in POLICY_CHECKS
    if check in OF_ORDER or "-ordered" not in name
]


@pytest.mark.usefixtures("draws")
@pytest.mark.parametrize(("make_policy", "check"), CASES)
def test_policy_conforms(make_policy: MakePolicy, check: Callable[[MakePolicy], None]) -> None:
    check(make_policy)


BELIEFS = {
    "pbm-ucb": ("statistics", "means", "widths"),
    "pbm-ts": ("statistics", "posterior"),
    "pbm-pie": ("statistics", "estimates", "entropies"),
    "comb-ucb1": ("means", "widths"),
    "cucb": ("means", "widths"),
    "grab": ("means",),
}
"""Fields of the state that depend on the counts alone."""

NO_BELIEFS = {"pb-mhb", "pmed", "cts"}  # beside the counts they keep scratch only


@pytest.mark.parametrize("treatment", TREATMENTS)
@pytest.mark.parametrize("name", BELIEFS)
def test_counts_alone_give_the_same_beliefs(name: str, treatment: Treatment) -> None:
    problem = make_problem("random", n_user_types=2, n_items=6, n_positions=3, seed=4)
    policy = make_policy(name, problem, treatment=treatment)
    state, counts = play(policy, problem, 60)
    afresh = policy.init_state(counts, policy.new_scratch())
    for field in BELIEFS[name]:
        _assert_alike(getattr(state, field), getattr(afresh, field))


def _assert_alike(kept: Any, made: Any) -> None:
    for one, other in zip(kept, made, strict=True) if isinstance(kept, tuple) else [(kept, made)]:
        np.testing.assert_allclose(one, other)


def test_what_policies_learn_from_counts_or_from_statistics_of_their_own_is_tested() -> None:
    assert {name for name, policy in BASELINES.items() if policy.own_statistics is None} <= set(
        BELIEFS
    ) | NO_BELIEFS


@pytest.mark.parametrize("make_policy", POLICIES.values(), ids=POLICIES)
def test_every_round_is_counted_once(make_policy: MakePolicy) -> None:
    problem = make_problem("random", n_user_types=2, n_items=6, n_positions=3, seed=4)
    counts = play(make_policy(problem), problem, 100).counts
    assert counts.arrivals.sum() == 100
    assert (counts.displays.sum(axis=1) == counts.arrivals[:, None]).all()  # one item at each position
    assert (counts.displays.sum(axis=2) <= counts.arrivals[:, None]).all()  # no item at two
