"""Utilities belong to equal treatment."""

from collections.abc import Callable
from typing import Any

import pytest

from banditrank import (
    NASH,
    FixedRanking,
    InvalidInputError,
    Oracle,
    Policy,
    ThompsonRank,
    TypeBlindUCB,
    UCBRank,
    UniformRandom,
    kdd2012,
    make_policy,
    simulate,
)
from banditrank.experiments import Suite
from banditrank.policies._catalog import BASELINES, POLICY_NAMES
from banditrank.policies._type_blind import TypeBlind

MESSAGE = "^utility must be left out under personalized treatment, which has none, got 'nash'$"
CLASSES = (
    UCBRank,
    ThompsonRank,
    UniformRandom,
    FixedRanking,
    TypeBlindUCB,
    lambda **aim: Oracle(kdd2012(), **aim),
)


@pytest.mark.parametrize("make", CLASSES)
def test_a_utility_under_personalized_treatment_is_refused(make: Callable[..., Policy]) -> None:
    """Finding 9: a policy refuses a utility that it would ignore."""
    for utility in ("nash", NASH):
        with pytest.raises(InvalidInputError, match=MESSAGE):
            make(treatment="personalized", utility=utility)
    assert make(treatment="equal", utility="nash").utility is NASH
    assert make(treatment="personalized", utility="utilitarian").treatment == "personalized"


def test_every_name_refuses_it() -> None:
    """Finding 9: so does each policy by name, also with a prefix."""
    for name in (*POLICY_NAMES, "conservative-ucb-rank", "type-blind-ucb-rank"):
        with pytest.raises(InvalidInputError, match=MESSAGE):
            make_policy(name, kdd2012(), utility="nash")
    assert BASELINES


def test_a_wrapper_of_another_treatment_has_no_utility_of_the_wrapped_policy() -> None:
    """Finding 9: the utility of a wrapped policy does not reach a treatment that has none."""
    wrapped = UCBRank(treatment="equal", utility="nash")
    assert str(TypeBlind(wrapped, treatment="personalized").utility) == "utilitarian"
    assert str(TypeBlind(wrapped).utility) == "nash"


class Own(Policy):
    utility = NASH

    def rank(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


def test_suites_and_own_policies_refuse_it() -> None:
    """Finding 9: so do suites of a comparison, and simulations of own policies."""
    with pytest.raises(InvalidInputError, match=MESSAGE):
        Suite(name="shop", problem=kdd2012(), utility="nash")
    with pytest.raises(InvalidInputError, match=MESSAGE):
        simulate(Own(), kdd2012(), 20, 1)
