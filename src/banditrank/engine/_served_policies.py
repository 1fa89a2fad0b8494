"""Policies that a surface can use: those that learn from counts alone."""

from collections.abc import Iterable
from dataclasses import replace

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._click_models import RankOneClickModel
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy, Treatment
from banditrank.policies._catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy
from banditrank.policies._oracle import Oracle
from banditrank.policies._paper_policy import PaperPolicy
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.policies.baselines._base import ExaminationBaselinePolicy
from banditrank.solvers._lottery.guarantees import Guarantee

_PLACEHOLDER = Problem([1.0], [[1.0]], [[0.5, 0.5]])  # policies that serve do not read the problem
_WITH_INITIAL_PHASE = ("greedy-rank", "ucb-rank")

LOTTERY_NAMES = ("auto", "thompson-rank", *_WITH_INITIAL_PHASE)
"""Names of the policies that draw rankings from lotteries."""


def served_policy(
    name: str,
    *,
    treatment: Treatment,
    utility: str,
    coefficient: float | None,
    click_model: RankOneClickModel = "single-look",
    guarantees: Iterable[Guarantee] = (),
) -> CompiledPolicy:
    """Return the policy of a surface.

    Guarantees, with indices of items and user types, are for policies that draw rankings from lotteries;
    others ignore them.

    The paper's policies start with pseudo-counts here instead of their initial phase, which needs a click in
    every cell: at usual click rates it would take too long, and start again with every new item.

    Raises
    ------
    UnknownNameError
        If there is no policy of this name.
    InvalidInputError
        If the policy cannot serve.

    Examples
    --------
    >>> served_policy("auto", treatment="equal", utility="nash", coefficient=None).name
    'thompson-rank'
    >>> served_policy("top-rank", treatment="personalized", utility="utilitarian", coefficient=None)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: policy must learn from counts alone to serve (it also needs which of
        two items in a block was clicked when the other was not), got 'top-rank'
    """
    if name not in POLICY_NAMES:
        raise UnknownNameError("policy", name, SERVED_NAMES)
    if (needs := _needs(name)) is not None:
        rule = f"must learn from counts alone to serve (it also needs {needs})"
        raise InvalidInputError("policy", rule, name)
    policy = make_policy(
        name,
        _PLACEHOLDER,
        treatment=treatment,
        utility=utility,
        coefficient=coefficient,
        smoothed=name in _WITH_INITIAL_PHASE,
        click_model=click_model,
    )
    if guarantees and isinstance(policy, ThompsonRank | PaperPolicy):
        return replace(policy, guarantees=tuple(guarantees))
    return policy


def _needs(name: str) -> str | None:
    if name == Oracle.name:
        return "the problem"
    if name in ORDERED_POLICY_NAMES:
        return "the order of positions"
    kind = BASELINES.get(name)
    if kind is None:
        return None
    return (
        "the positions' examination rates"
        if issubclass(kind, ExaminationBaselinePolicy)
        else kind.own_statistics
    )


SERVED_NAMES = tuple(name for name in POLICY_NAMES if _needs(name) is None)
"""Names of the policies that a surface can use, the default first."""
