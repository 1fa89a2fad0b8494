"""Policies by name."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from typing import Any, get_args

import numpy as np

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators._smoothing import Smoothing
from banditrank.model._click_models import (
    SINGLE_LOOK,
    ClickModel,
    DependentClick,
    PositionBased,
    RankOneClickModel,
    as_click_model,
)
from banditrank.model._problem import Problem
from banditrank.model._rewards import Rewards, as_rewards
from banditrank.model._timeline import Timeline, as_timeline
from banditrank.policies._base import CompiledPolicy, Treatment, is_equal
from banditrank.policies._conservative import CONSERVATIVE_PREFIX, Conservative
from banditrank.policies._forgetful import Forgetful
from banditrank.policies._greedy_rank import GreedyRank
from banditrank.policies._oracle import Oracle
from banditrank.policies._paper_policy import EstimatorName
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.policies._type_blind import TYPE_BLIND_PREFIX, TypeBlind, TypeBlindUCB
from banditrank.policies._ucb_rank import UCBRank
from banditrank.policies._uniform import UniformRandom
from banditrank.policies.baselines._base import (
    BaselinePolicy,
    ExaminationBaselinePolicy,
    OrderedBaselinePolicy,
)
from banditrank.policies.baselines._batch_rank import BatchRank
from banditrank.policies.baselines._bubble_rank import BubbleRank
from banditrank.policies.baselines._cascade_kl_ucb import CascadeKLUCB
from banditrank.policies.baselines._cascade_ts import CascadeTS
from banditrank.policies.baselines._comb_ucb1 import CombUCB1
from banditrank.policies.baselines._cts import CTS
from banditrank.policies.baselines._cucb import CUCB
from banditrank.policies.baselines._ftrl_pbm import FTRLPBM
from banditrank.policies.baselines._grab import GRAB
from banditrank.policies.baselines._nash_ucb import NashUCB
from banditrank.policies.baselines._pb_mhb import PBMHB
from banditrank.policies.baselines._pbm_pie import PBMPIE
from banditrank.policies.baselines._pbm_ts import PBMTS
from banditrank.policies.baselines._pbm_ucb import PBMUCB
from banditrank.policies.baselines._pmed import PMED
from banditrank.policies.baselines._ranked_bandits import RankedBandits
from banditrank.policies.baselines._top_rank import TopRank
from banditrank.policies.baselines._uni_rank import UniRank
from banditrank.solvers._lottery.guarantees import Guarantee
from banditrank.solvers._solve import SolverName
from banditrank.utilities._utility import Utility, as_utility

COEFFICIENT_POLICIES: dict[str, Callable[..., CompiledPolicy]] = {
    policy.name: policy for policy in (GreedyRank, UCBRank, TypeBlindUCB)
}
"""Policies with a coefficient, by name."""

BASELINES: dict[str, type[BaselinePolicy]] = {
    policy.name: policy
    for policy in (
        *(PBMUCB, PBMTS, PBMPIE),
        *(TopRank, BatchRank, CascadeKLUCB, CascadeTS, BubbleRank, UniRank, RankedBandits),
        *(PBMHB, GRAB, CombUCB1, PMED, CUCB, CTS, FTRLPBM, NashUCB),
    )
}
"""Policies of other papers, by name."""

ORDERED_SUFFIX = "-ordered"
"""Suffix of the name of a policy that assumes an order of positions: it is given the true order."""

ORDERED_POLICY_NAMES = tuple(
    f"{name}{ORDERED_SUFFIX}"
    for name, policy in BASELINES.items()
    if issubclass(policy, OrderedBaselinePolicy)
)

AUTO = "auto"
"""Name of the default policy, ThompsonRank."""

TYPE_BLIND_NAMES = tuple(
    f"{TYPE_BLIND_PREFIX}{name}"
    for name in (ThompsonRank.name, GreedyRank.name, UCBRank.name, *BASELINES, *ORDERED_POLICY_NAMES)
)
"""Names of the policies that `make_policy` makes type-blind, beside the paper's baseline."""

CONSERVATIVE_NAMES = tuple(
    f"{CONSERVATIVE_PREFIX}{name}"
    for name in (
        ThompsonRank.name,
        *COEFFICIENT_POLICIES,
        f"{TYPE_BLIND_PREFIX}{ThompsonRank.name}",
        *BASELINES,
        *ORDERED_POLICY_NAMES,
    )
)
"""Names of the policies that `make_policy` keeps close to a fixed ranking."""

WRAPPED_NAMES = (*TYPE_BLIND_NAMES, *CONSERVATIVE_NAMES)
"""Names of policies with a prefix."""

POLICY_NAMES = (
    AUTO,
    ThompsonRank.name,
    *COEFFICIENT_POLICIES,
    f"{TYPE_BLIND_PREFIX}{ThompsonRank.name}",
    *BASELINES,
    *ORDERED_POLICY_NAMES,
    UniformRandom.name,
    Oracle.name,
)
"""Names that `make_policy` accepts, beside those with the prefixes ``type-blind-`` and ``conservative-``."""

_OPTION_DEFAULTS: dict[str, Any] = {
    "coefficient": None,
    "solver": "auto",
    "estimator": "paper",
    "smoothed": False,
}
"""Options that only some policies accept, with their defaults."""

_OPTIONS_BY_POLICY = {
    **dict.fromkeys(COEFFICIENT_POLICIES, ("coefficient",)),
    **dict.fromkeys((GreedyRank.name, UCBRank.name), tuple(_OPTION_DEFAULTS)),
    **dict.fromkeys(
        (f"{TYPE_BLIND_PREFIX}{GreedyRank.name}", f"{TYPE_BLIND_PREFIX}{UCBRank.name}"),
        ("coefficient", "estimator", "smoothed"),
    ),
    **dict.fromkeys((AUTO, ThompsonRank.name), ("solver",)),
}

DEFAULT_POLICIES: tuple[tuple[str, Treatment], ...] = (
    (AUTO, "personalized"),
    ("greedy-rank", "personalized"),
    ("ucb-rank", "personalized"),
    ("type-blind-ucb", "personalized"),
    (AUTO, "equal"),
    ("greedy-rank", "equal"),
    ("ucb-rank", "equal"),
)
"""Policies and treatments that are compared by default: ThompsonRank, the paper's four and its baseline."""

LOTTERY_POLICIES: tuple[tuple[str, Treatment], ...] = (
    (AUTO, "equal-lottery"),
    ("greedy-rank", "equal-lottery"),
    ("ucb-rank", "equal-lottery"),
)
"""Policies that are compared by default if equal-lottery treatment is chosen."""


GUARANTEE_POLICIES = (AUTO, ThompsonRank.name, GreedyRank.name, UCBRank.name, Oracle.name)
"""Policies that can keep guarantees: those with lotteries."""


def make_policy(
    name: str,
    problem: Problem | Timeline | None = None,
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
    guarantees: Iterable[Guarantee] = (),
) -> CompiledPolicy:
    """Return a policy by name.

    Parameters
    ----------
    name
        One of `POLICY_NAMES`. With the prefix ``type-blind-``, a policy learns from counts pooled over user
        types (`TypeBlind`), and is given the average user's examination or order of positions. With the
        prefix ``conservative-``, it earns at least 90% of what the items in the order of their numbers would
        have earned, at all times (`Conservative`).
    problem, rewards, click_model
        What the oracle knows, and what baselines know about positions; other policies need no problem. Of
        a problem that changes, they know how it starts. ThompsonRank knows whether clicks are
        position-based; it assumes single looks under any other click model.
    treatment, utility
        What the policy maximises.
    coefficient
        c of GreedyRank, UCBRank and TypeBlindUCB; that of the paper's experiment on Table 1 by default.
    solver
        Solver of equal treatment of ThompsonRank, GreedyRank and UCBRank.
    horizon
        Number of rounds, for policies that are tuned to it.
    memory
        Rounds to learn from: ``window:ROUNDS`` or ``discount:ROUNDS``; all by default.
    estimator, smoothed
        Estimator of GreedyRank and UCBRank, and whether they start with pseudo-counts instead of an initial
        phase.
    guarantees
        What lotteries keep under ``equal-lottery`` and ``personalized`` treatment, for ThompsonRank,
        GreedyRank, UCBRank and the oracle.

    Raises
    ------
    UnknownNameError
        If there is no policy, treatment, utility, solver or estimator of that name.
    InvalidInputError
        If a parameter is not valid, does not apply to the policy, or the policy needs a problem.
    UnsolvableError
        If the solver cannot maximise the utility.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> make_policy("ucb-rank", treatment="equal").schedule.coefficient
    0.5
    >>> make_policy("top-rank-ordered", kdd2012()).order
    ((1, 0), (1, 0))
    >>> make_policy("type-blind-grab").name
    'type-blind-grab'
    >>> make_policy("conservative-thompson-rank").alpha
    0.1
    """
    _check_names(name, estimator, smoothed)
    rewards = None if rewards is None else as_rewards(rewards)
    click_model = as_click_model(click_model)
    options = non_default_options(
        coefficient=coefficient, solver=solver, estimator=estimator, smoothed=smoothed
    )
    for option, value in options.items():
        if option not in _OPTIONS_BY_POLICY.get(name.removeprefix(CONSERVATIVE_PREFIX), ()):
            raise InvalidInputError(option, f"must be left out for policy {name}", value)
    options |= _guarantees_of(name, guarantees)
    if name in WRAPPED_NAMES:
        make_wrapped = partial(
            make_policy, problem=problem, rewards=rewards, click_model=click_model, horizon=horizon, **options
        )
        max_reward = _max_total_reward(problem, rewards, click_model)
        wrapper = _make_wrapper(name, make_wrapped, treatment, utility, max_reward)
        return wrapper if memory is None else Forgetful(wrapper, memory)
    if options.pop("smoothed", False):
        options["smoothing"] = Smoothing()
    options |= {"treatment": treatment, "utility": as_utility(utility)}
    first = None if problem is None else as_timeline(problem).problems[0]
    if name in COEFFICIENT_POLICIES:
        policy = COEFFICIENT_POLICIES[name](**options)
    elif name in (AUTO, ThompsonRank.name):
        max_reward = 1.0 if rewards is None else rewards.scale
        looks: RankOneClickModel = (
            "position-based" if click_model.name == PositionBased.name else "single-look"
        )
        policy = ThompsonRank(max_reward=max_reward, click_model=looks, **options)
    elif name == UniformRandom.name:
        policy = UniformRandom(**options)
    elif name == Oracle.name:
        policy = Oracle(_check_given(first, name), rewards=rewards, click_model=click_model, **options)
    else:
        policy = _make_baseline(name, first, click_model, horizon, options)
    return policy if memory is None else Forgetful(policy, memory)


def _check_names(name: str, estimator: str, smoothed: object) -> None:
    if name not in (*POLICY_NAMES, *WRAPPED_NAMES):
        raise UnknownNameError("policy", name, POLICY_NAMES)
    if estimator not in get_args(EstimatorName):
        raise UnknownNameError("estimator", estimator, get_args(EstimatorName))
    if not isinstance(smoothed, bool):
        raise InvalidInputError("smoothed", "must be true or false", smoothed)


def _make_wrapper(
    name: str,
    make_wrapped: Callable[..., CompiledPolicy],
    treatment: Treatment,
    utility: Utility | str,
    max_reward: float,
) -> CompiledPolicy:
    """Return a policy with a prefix, around the one without it."""
    if name in CONSERVATIVE_NAMES:
        own = name.removeprefix(CONSERVATIVE_PREFIX)
        return Conservative(
            make_wrapped(name=own, treatment=treatment, utility=utility), max_reward=max_reward
        )
    own = name.removeprefix(TYPE_BLIND_PREFIX)
    # A baseline's copy for equal treatment knows the positions of the average user.
    is_baseline = own.removesuffix(ORDERED_SUFFIX) in BASELINES
    wrapped = make_wrapped(name=own, treatment="equal" if is_baseline else "personalized")
    return TypeBlind(wrapped, treatment=treatment, utility=utility)


def _max_total_reward(
    problem: Problem | Timeline | None, rewards: Rewards | None, click_model: ClickModel
) -> float:
    """Return the maximum reward for `Conservative`: of all positions if clicks depend on each other."""
    scale = 1.0 if rewards is None else rewards.scale
    if problem is None or click_model.name != DependentClick.name:
        return scale
    return scale * problem.n_positions


def _guarantees_of(name: str, guarantees: Iterable[Guarantee]) -> dict[str, tuple[Guarantee, ...]]:
    """Return the option of a policy that keeps guarantees, if there are any."""
    kept = tuple(guarantees)
    if kept and name not in GUARANTEE_POLICIES:
        rule = f"must be left out for policy {name}, which has no lotteries"
        raise InvalidInputError("guarantees", rule, kept[0])
    return {"guarantees": kept} if kept else {}


def _check_given(problem: Problem | None, name: str) -> Problem:
    if problem is None:
        raise InvalidInputError("problem", f"must be given for policy {name}", problem)
    return problem


def non_default_options(**options: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults.

    Examples
    --------
    >>> non_default_options(coefficient=None, solver="sampling", smoothed=False)
    {'solver': 'sampling'}
    """
    return {option: value for option, value in options.items() if value != _OPTION_DEFAULTS[option]}


def accepts_option(option: str, name: str, treatment: Treatment) -> bool:
    """Return whether a policy accepts an option of `make_policy` under a treatment.

    Examples
    --------
    >>> [accepts_option("solver", "ucb-rank", treatment) for treatment in ("personalized", "equal")]
    [False, True]
    """
    name = name.removeprefix(CONSERVATIVE_PREFIX)
    return option in _OPTIONS_BY_POLICY.get(name, ()) and (option != "solver" or treatment == "equal")


def _make_baseline(
    name: str, problem: Problem | None, click_model: ClickModel, horizon: int | None, options: dict[str, Any]
) -> BaselinePolicy:
    """Return a baseline with the information about positions that it assumes to know."""
    kind = BASELINES[name.removesuffix(ORDERED_SUFFIX)]
    if name.endswith(ORDERED_SUFFIX) or issubclass(kind, ExaminationBaselinePolicy):
        problem = _check_given(problem, name)
        weights = click_model.position_weights(problem)
        if is_equal(options["treatment"]):
            weights = problem.arrival_rates[None, :] @ weights
        if issubclass(kind, ExaminationBaselinePolicy):
            options["examination"] = weights.tolist()
        else:
            options["order"] = np.argsort(-weights, axis=1, kind="stable").tolist()
    if horizon is not None and "horizon" in {field.name for field in fields(kind)}:
        options["horizon"] = horizon
    return kind(**options)
