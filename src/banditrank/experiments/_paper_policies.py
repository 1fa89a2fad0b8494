"""The paper's four policies with the coefficients of its section 5.2.

Names are those that the command line prints (`banditrank.policies._base.policy_label`), without the
coefficient: the paper's PT-UCBRank is ``ucb-rank-personalized``, ET-UCBRank ``ucb-rank-equal-utilitarian``.
"""

from collections.abc import Callable

from banditrank.policies._base import CompiledPolicy
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._ucb_rank import UCBRank

COEFFICIENT_POLICIES: dict[str, Callable[[float], CompiledPolicy]] = {
    "greedy-rank-personalized": lambda c: GreedyRank(coefficient=c),
    "ucb-rank-personalized": lambda c: UCBRank(coefficient=c),
    "greedy-rank-equal-utilitarian": lambda c: GreedyRank(coefficient=c, treatment="equal"),
    "ucb-rank-equal-utilitarian": lambda c: UCBRank(coefficient=c, treatment="equal"),
}
COEFFICIENTS = {
    "greedy-rank-personalized": 0.25,
    "ucb-rank-personalized": 0.25,
    "greedy-rank-equal-utilitarian": 0.5,
    "ucb-rank-equal-utilitarian": 0.5,
}
POLICIES = {name: make(COEFFICIENTS[name]) for name, make in COEFFICIENT_POLICIES.items()}
"""Policies with the paper's own coefficients."""

CATALOG_NAMES = {name: policy.name for name, policy in POLICIES.items()}
"""Names of the policies in the catalog, which determine their colours."""
