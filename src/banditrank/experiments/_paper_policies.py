"""The paper's four policies with the coefficients of its section 5.2."""

from collections.abc import Callable

from banditrank.policies._base import CompiledPolicy
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._ucb_rank import UCBRank

LABELS = {
    "greedy-personalized": "PT-GreedyRank",
    "ucb-personalized": "PT-UCBRank",
    "greedy-equal": "ET-GreedyRank",
    "ucb-equal": "ET-UCBRank",
}
"""Names in the paper: PT for personalized treatment, ET for equal treatment."""

POLICY_NAMES = {
    label: "greedy-rank" if name.startswith("greedy") else "ucb-rank" for name, label in LABELS.items()
}
"""Names of the policies in the catalog, by label."""

COEFFICIENT_POLICIES: dict[str, Callable[[float], CompiledPolicy]] = {
    "greedy-personalized": lambda c: GreedyRank(coefficient=c),
    "ucb-personalized": lambda c: UCBRank(coefficient=c),
    "greedy-equal": lambda c: GreedyRank(coefficient=c, treatment="equal"),
    "ucb-equal": lambda c: UCBRank(coefficient=c, treatment="equal"),
}
COEFFICIENTS = {
    "greedy-personalized": 0.25,
    "ucb-personalized": 0.25,
    "greedy-equal": 0.5,
    "ucb-equal": 0.5,
}
POLICIES = {name: make(COEFFICIENTS[name]) for name, make in COEFFICIENT_POLICIES.items()}
"""Policies with the paper's own coefficients."""
