"""Policies that a surface can use: those that learn from counts alone."""

from typing import Literal, TypeAlias, get_args

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._click_models import RankOneClickModel
from banditrank.model._problem import Problem
from banditrank.policies._base import CompiledPolicy, Treatment
from banditrank.policies._catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy
from banditrank.policies._oracle import Oracle
from banditrank.policies.baselines._base import ExaminationBaselinePolicy

ServedTreatment: TypeAlias = Literal["personalized", "equal"]
"""A treatment that a surface can have."""

_PLACEHOLDER = Problem([1.0], [[1.0]], [[0.5, 0.5]])  # policies that serve do not read the problem
_WITH_INITIAL_PHASE = ("greedy-rank", "ucb-rank")


def served_policy(
    name: str,
    *,
    treatment: ServedTreatment,
    utility: str,
    coefficient: float | None,
    click_model: RankOneClickModel = "single-look",
) -> CompiledPolicy:
    """Return the policy of a surface.

    The paper's policies start with pseudo-counts here instead of their initial phase, which needs a click in
    every cell: at usual click rates it would take too long, and start again with every new item.

    Raises
    ------
    UnknownNameError
        If there is no policy or treatment of this name.
    InvalidInputError
        If the policy or the treatment cannot serve.

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
    if treatment not in get_args(ServedTreatment):
        if treatment in get_args(Treatment):
            rule = "must be personalized or equal for a surface: lotteries run in simulations only"
            raise InvalidInputError("treatment", rule, treatment)
        raise UnknownNameError("treatment", treatment, get_args(ServedTreatment))
    return make_policy(
        name,
        _PLACEHOLDER,
        treatment=treatment,
        utility=utility,
        coefficient=coefficient,
        smoothed=name in _WITH_INITIAL_PHASE,
        click_model=click_model,
    )


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
