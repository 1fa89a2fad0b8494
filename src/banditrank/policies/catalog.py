"""Policies by name."""

from collections.abc import Callable
from typing import Any

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.model.rewards import Rewards
from banditrank.policies.base import CompiledPolicy, Treatment
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.oracle import Oracle
from banditrank.policies.schedules import constant
from banditrank.policies.type_blind import TypeBlindUCB
from banditrank.policies.ucb_rank import UCBRank
from banditrank.policies.uniform import UniformRandom
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility, find_utility

LEARNERS: dict[str, Callable[..., CompiledPolicy]] = {
    policy.name: policy for policy in (GreedyRank, UCBRank, TypeBlindUCB)
}
"""Policies that take a coefficient."""

POLICY_NAMES = (*LEARNERS, UniformRandom.name, Oracle.name)

PAPER_COEFFICIENTS: dict[Treatment, float] = {"personalized": 0.25, "equal": 0.5}
"""c in the paper's experiment on Table 1, by treatment."""

PAPER_LINE_UP: tuple[tuple[str, Treatment], ...] = (
    ("greedy-rank", "personalized"),
    ("ucb-rank", "personalized"),
    ("type-blind-ucb", "personalized"),
    ("greedy-rank", "equal"),
    ("ucb-rank", "equal"),
)
"""The paper's four policies and its baseline."""


def find_policy(
    name: str,
    problem: Problem,
    *,
    treatment: Treatment = "personalized",
    utility: Utility | str = "utilitarian",
    coefficient: float | None = None,
    solver: SolverName = "auto",
    rewards: Rewards | None = None,
) -> CompiledPolicy:
    """Return a policy by name.

    Parameters
    ----------
    name
        One of `POLICY_NAMES`.
    problem, rewards
        The world, for the oracle.
    treatment, utility
        What to be good at.
    coefficient
        c, for policies that learn; that of the paper's experiment on Table 1 when left out.
    solver
        How GreedyRank and UCBRank solve equal treatment.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> find_policy("ucb-rank", kdd2012(), treatment="equal").schedule.coefficient
    0.5
    """
    if name not in POLICY_NAMES:
        raise UnknownNameError("policy", name, POLICY_NAMES)
    aim: dict[str, Any] = {"treatment": treatment, "utility": find_utility(utility)}
    if solver != "auto":
        if name not in (GreedyRank.name, UCBRank.name):
            raise InvalidInputError("solver", f"must be auto for policy {name}", solver)
        aim["solver"] = solver
    if name in LEARNERS:
        c = PAPER_COEFFICIENTS.get(treatment, 0.0) if coefficient is None else coefficient
        return LEARNERS[name](c, **aim)
    if coefficient is not None:
        constant(coefficient)  # of no account here, but a bad one is refused all the same
    if name == UniformRandom.name:
        return UniformRandom(**aim)
    return Oracle(problem, rewards=rewards, **aim)
