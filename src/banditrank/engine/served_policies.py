"""Which policies can serve: those that learn from counts alone, and are told nothing of the world."""

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.policies.base import CompiledPolicy, Treatment
from banditrank.policies.catalog import BASELINES, ORDERED_POLICY_NAMES, POLICY_NAMES, make_policy
from banditrank.policies.baselines.base import ExaminationBaselinePolicy
from banditrank.policies.oracle import Oracle

_NO_WORLD = Problem([1.0], [[1.0]], [[0.5, 0.5]])  # policies that serve look at no world
_WITH_INITIAL_PHASE = ("greedy-rank", "ucb-rank")


def served_policy(
    name: str, *, treatment: Treatment, utility: str, coefficient: float | None
) -> CompiledPolicy:
    """Return the policy of a surface, or raise an error if it cannot serve.

    The paper's policies start with pseudo-counts here: their initial phase asks for a click in every cell,
    which at usual click rates never comes, and would begin anew with every new item.

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
    return make_policy(
        name,
        _NO_WORLD,
        treatment=treatment,
        utility=utility,
        coefficient=coefficient,
        smoothed=name in _WITH_INITIAL_PHASE,
    )


def _needs(name: str) -> str | None:
    if name == Oracle.name:
        return "the truth"
    if name in ORDERED_POLICY_NAMES:
        return "the order of positions"
    kind = BASELINES.get(name)
    if kind is None:
        return None
    return (
        "the positions' examination rates" if issubclass(kind, ExaminationBaselinePolicy) else kind.own_statistics
    )


SERVED_NAMES = tuple(name for name in POLICY_NAMES if _needs(name) is None)
"""The policies that a surface may name, the default first."""
