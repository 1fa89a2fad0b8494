"""Policies by name."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators.smoothing import Smoothing
from banditrank.model.click_model_catalog import as_click_model
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.problem import Problem
from banditrank.model.rewards import Rewards, as_rewards
from banditrank.model.timeline import Timeline, as_timeline
from banditrank.policies.base import CompiledPolicy, Treatment
from banditrank.policies.baselines.base import BaselinePolicy, ExaminationBaselinePolicy, OrderedBaselinePolicy
from banditrank.policies.baselines.batch_rank import BatchRank
from banditrank.policies.baselines.bubble_rank import BubbleRank
from banditrank.policies.baselines.cascade_kl_ucb import CascadeKLUCB
from banditrank.policies.baselines.comb_ucb1 import CombUCB1
from banditrank.policies.baselines.grab import GRAB
from banditrank.policies.baselines.pb_mhb import PBMHB
from banditrank.policies.baselines.pbm_pie import PBMPIE
from banditrank.policies.baselines.pbm_ts import PBMTS
from banditrank.policies.baselines.pbm_ucb import PBMUCB
from banditrank.policies.baselines.pmed import PMED
from banditrank.policies.baselines.ranked_bandits import RankedBandits
from banditrank.policies.baselines.top_rank import TopRank
from banditrank.policies.baselines.uni_rank import UniRank
from banditrank.policies.forgetful import Forgetful
from banditrank.policies.greedy_rank import GreedyRank
from banditrank.policies.oracle import Oracle
from banditrank.policies.paper_policy import EstimatorName
from banditrank.policies.thompson_rank import ThompsonRank
from banditrank.policies.type_blind import TypeBlindUCB
from banditrank.policies.ucb_rank import UCBRank
from banditrank.policies.uniform import UniformRandom
from banditrank.solvers.solve import SolverName
from banditrank.utilities.utility import Utility, as_utility

COEFFICIENT_POLICIES: dict[str, Callable[..., CompiledPolicy]] = {
    policy.name: policy for policy in (GreedyRank, UCBRank, TypeBlindUCB)
}
"""Policies that take a coefficient."""

BASELINES: dict[str, type[BaselinePolicy]] = {
    policy.name: policy
    for policy in (
        *(PBMUCB, PBMTS, PBMPIE),
        *(TopRank, BatchRank, CascadeKLUCB, BubbleRank, UniRank, RankedBandits),
        *(PBMHB, GRAB, CombUCB1, PMED),
    )
}
"""The field's policies."""

ORDERED_SUFFIX = "-ordered"  # after the name of a policy that assumes an order of positions: it is told the true one

ORDERED_POLICY_NAMES = tuple(
    f"{name}{ORDERED_SUFFIX}" for name, policy in BASELINES.items() if issubclass(policy, OrderedBaselinePolicy)
)

AUTO = "auto"
"""Stands for the policy to take if there is no reason for another: ThompsonRank."""

POLICY_NAMES = (
    AUTO,
    ThompsonRank.name,
    *COEFFICIENT_POLICIES,
    *BASELINES,
    *ORDERED_POLICY_NAMES,
    UniformRandom.name,
    Oracle.name,
)

_OPTION_DEFAULTS: dict[str, Any] = {"coefficient": None, "solver": "auto", "estimator": "paper", "smoothed": False}
"""What some policies can be told beside what to be good at, as it is if nothing is said."""

_OPTIONS_BY_POLICY = {
    **dict.fromkeys(COEFFICIENT_POLICIES, ("coefficient",)),
    **dict.fromkeys((GreedyRank.name, UCBRank.name), tuple(_OPTION_DEFAULTS)),
    **dict.fromkeys((AUTO, ThompsonRank.name), ("solver",)),
}
"""Who has a use for which."""

PAPER_COEFFICIENTS: dict[Treatment, float] = {"personalized": 0.25, "equal": 0.5}
"""c in the paper's experiment on Table 1, by treatment."""

DEFAULT_POLICIES: tuple[tuple[str, Treatment], ...] = (
    (AUTO, "personalized"),
    ("greedy-rank", "personalized"),
    ("ucb-rank", "personalized"),
    ("type-blind-ucb", "personalized"),
    (AUTO, "equal"),
    ("greedy-rank", "equal"),
    ("ucb-rank", "equal"),
)
"""The policy to take, and the paper's four and its baseline to compare it with."""


def make_policy(
    name: str,
    problem: Problem | Timeline,
    *,
    treatment: Treatment = "personalized",
    utility: Utility | str = "utilitarian",
    coefficient: float | None = None,
    solver: SolverName = "auto",
    rewards: Rewards | str | None = None,
    click_model: ClickModel | str = SINGLE_LOOK,
    horizon: int | None = None,
    memory: str | None = None,
    estimator: EstimatorName = "paper",
    smoothed: bool = False,
) -> CompiledPolicy:
    """Return a policy by name.

    Parameters
    ----------
    name
        One of `POLICY_NAMES`.
    problem, rewards, click_model
        The world, for the oracle and for policies that take something of it for known. Of a world that
        changes they know how it is at the start.
    treatment, utility
        What to be good at.
    coefficient
        c of GreedyRank, UCBRank and TypeBlindUCB; that of the paper's experiment on Table 1 when left out.
    solver
        How ThompsonRank, GreedyRank and UCBRank solve equal treatment.
    estimator, smoothed
        What GreedyRank and UCBRank estimate by, and whether they begin with pseudo-counts instead of an
        initial phase.
    horizon
        The number of rounds, for policies that are tuned to it.
    memory
        What of the past to learn from: ``window:ROUNDS`` or ``discount:ROUNDS``; all of it when left out.

    Examples
    --------
    >>> from banditrank.model.catalog import kdd2012
    >>> make_policy("ucb-rank", kdd2012(), treatment="equal").schedule.coefficient
    0.5
    >>> make_policy("top-rank-ordered", kdd2012()).order
    ((1, 0), (1, 0))
    """
    _check_choices(name, estimator, smoothed)
    rewards = None if rewards is None else as_rewards(rewards)
    click_model = as_click_model(click_model)
    told = non_default_options(coefficient=coefficient, solver=solver, estimator=estimator, smoothed=smoothed)
    for option, value in told.items():
        if option not in _OPTIONS_BY_POLICY.get(name, ()):
            raise InvalidInputError(option, f"must be left out for policy {name}", value)
    told.pop("coefficient", None)
    if told.pop("smoothed", False):
        told["smoothing"] = Smoothing()
    aim: dict[str, Any] = {"treatment": treatment, "utility": as_utility(utility), **told}
    world = as_timeline(problem).problems[0]
    if name in COEFFICIENT_POLICIES:
        c = PAPER_COEFFICIENTS.get(treatment, 0.0) if coefficient is None else coefficient
        policy = COEFFICIENT_POLICIES[name](c, **aim)
    elif name in (AUTO, ThompsonRank.name):
        policy = ThompsonRank(max_reward=1.0 if rewards is None else rewards.scale, **aim)
    elif name == UniformRandom.name:
        policy = UniformRandom(**aim)
    elif name == Oracle.name:
        policy = Oracle(world, rewards=rewards, click_model=click_model, **aim)
    else:
        policy = _make_baseline(name, world, click_model, horizon, aim)
    return policy if memory is None else Forgetful(policy, memory)


def _check_choices(name: str, estimator: str, smoothed: object) -> None:
    if name not in POLICY_NAMES:
        raise UnknownNameError("policy", name, POLICY_NAMES)
    if estimator not in get_args(EstimatorName):
        raise UnknownNameError("estimator", estimator, get_args(EstimatorName))
    if not isinstance(smoothed, bool):
        raise InvalidInputError("smoothed", "must be true or false", smoothed)


def non_default_options(**options: Any) -> dict[str, Any]:
    """Return which of the options that only some policies have a use for are not as they are by default.

    Examples
    --------
    >>> non_default_options(coefficient=None, solver="sampling", smoothed=False)
    {'solver': 'sampling'}
    """
    return {option: value for option, value in options.items() if value != _OPTION_DEFAULTS[option]}


def accepts_option(option: str, name: str, treatment: Treatment) -> bool:
    """Return whether a policy has a use for an option of `make_policy`.

    Examples
    --------
    >>> [accepts_option("solver", "ucb-rank", treatment) for treatment in ("personalized", "equal")]
    [False, True]
    """
    return option in _OPTIONS_BY_POLICY.get(name, ()) and (option != "solver" or treatment == "equal")


def _make_baseline(
    name: str, problem: Problem, click_model: ClickModel, horizon: int | None, aim: dict[str, Any]
) -> BaselinePolicy:
    """Return a field policy, told what it takes for known."""
    kind = BASELINES[name.removesuffix(ORDERED_SUFFIX)]
    weights = click_model.position_weights(problem)
    if aim["treatment"] == "equal":
        weights = problem.arrival_rates[None, :] @ weights
    if issubclass(kind, ExaminationBaselinePolicy):
        aim["examination"] = weights.tolist()
    if name.endswith(ORDERED_SUFFIX):
        aim["order"] = np.argsort(-weights, axis=1, kind="stable").tolist()
    if horizon is not None and "horizon" in {field.name for field in fields(kind)}:
        aim["horizon"] = horizon
    return kind(**aim)
