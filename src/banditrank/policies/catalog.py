"""Policies by name."""

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.policies.base import CompiledPolicy, Treatment
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.oracle import Oracle
from banditrank.policies.type_blind import TypeBlindUCB
from banditrank.policies.ucb_rank import UCBRank
from banditrank.policies.uniform import UniformRandom
from banditrank.solvers.equal import Solver
from banditrank.utilities.utility import Utility

POLICY_NAMES = ("greedy-rank", "ucb-rank", "type-blind-ucb", "random", "oracle")

PAPER_COEFFICIENTS: dict[str, float] = {"personalized": 0.25, "equal": 0.5}
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
    solver: Solver = "auto",
) -> CompiledPolicy:
    """Return a policy by name.

    Parameters
    ----------
    name
        One of `POLICY_NAMES`.
    problem
        The world, for the oracle.
    coefficient
        c; that of the paper's experiment on Table 1 when left out.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> find_policy("ucb-rank", kdd2012(), treatment="equal").schedule.coefficient
    0.5
    """
    if name not in POLICY_NAMES:
        raise UnknownNameError("policy", name, POLICY_NAMES)
    if solver != "auto" and name not in ("greedy-rank", "ucb-rank"):
        raise InvalidInputError("solver", f"must be auto for policy {name}", solver)
    if name == "random":
        return UniformRandom(treatment=treatment, utility=utility)
    if name == "oracle":
        return Oracle(problem, treatment=treatment, utility=utility)
    c = PAPER_COEFFICIENTS.get(treatment, 0.0) if coefficient is None else coefficient
    if name == "type-blind-ucb":
        return TypeBlindUCB(c, treatment=treatment, utility=utility)
    policy = GreedyRank if name == "greedy-rank" else UCBRank
    return policy(c, treatment=treatment, utility=utility, solver=solver)
