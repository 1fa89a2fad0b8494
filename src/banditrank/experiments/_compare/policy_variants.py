"""Policies of a comparison: built-in and custom ones, with and without a sliding window."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from banditrank._import_path import is_import_path
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.experiments._compare.names import check_name
from banditrank.experiments._compare.suites import WINDOWS_PER_HORIZON, AnyProblem, Suite
from banditrank.model._catalog import kdd2012
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.policies._assumptions import PositionInformation
from banditrank.policies._base import CompiledPolicy, is_equal
from banditrank.policies._catalog import (
    AUTO,
    GUARANTEE_POLICIES,
    ORDERED_SUFFIX,
    POLICY_NAMES,
    WRAPPED_NAMES,
    make_policy,
)
from banditrank.policies._contextual.catalog import CONTEXTUAL_POLICY_NAMES, make_contextual_policy
from banditrank.policies._contextual.lin_pbm import LinTS, LinUCB
from banditrank.policies._custom import CustomPolicy, PolicySource
from banditrank.policies._forgetful import Forgetful
from banditrank.policies._oracle import Oracle
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.policies._uniform import UniformRandom
from banditrank.simulation._component_identities import own_parameters
from banditrank.simulation._labels import distinct_suffixes
from banditrank.simulation._simulate import AnyPolicy
from banditrank.utilities._utility import as_utility

PositionKnowledge: TypeAlias = Literal["nothing", "order assumed", "order given", "examination known"]

_KNOWLEDGE: Mapping[PositionInformation, PositionKnowledge] = {
    "nothing": "nothing",
    "order": "order assumed",
    "examination": "examination known",
}

DEFAULT_POLICY = ThompsonRank.name  # AUTO is an alias of it

ALL_POLICIES = tuple(name for name in POLICY_NAMES if name not in (AUTO, Oracle.name))
"""Built-in policies that are compared by default; the oracle has no regret."""

CONTEXTUAL_POLICIES = tuple(name for name in CONTEXTUAL_POLICY_NAMES if name not in POLICY_NAMES)
"""Built-in policies that run only where users and items have features."""

ALL_NAME = "all"
"""Name for all built-in policies, or all built-in suites."""

RANDOM_POLICY = UniformRandom.name  # reference for scale, never counted as the best

WINDOW_SUFFIX = "+window"  # of the label of a policy with a sliding window


@dataclass(frozen=True)
class ComparedPolicy:
    """A policy of the catalog, or a custom one.

    Parameters
    ----------
    name
        Name in tables, and of its jobs.
    custom
        Makes the policy, if it is a custom one.

    Examples
    --------
    >>> [ComparedPolicy(name).position_knowledge for name in ("grab", "top-rank", "top-rank-ordered")]
    ['nothing', 'order assumed', 'order given']
    """

    name: str
    custom: CustomPolicy | None = None

    def make_policy(
        self, suite: Suite, problem: AnyProblem, horizon: int, memory: str | None = None
    ) -> AnyPolicy:
        """Return the policy for a suite, with the parameters of the problem that it needs to know."""
        if isinstance(problem, ContextualProblem):
            return make_contextual_policy(
                self.name, problem, rewards=suite.rewards, click_model=suite.click_model
            )
        if self.custom is None:
            return make_policy(
                self.name,
                problem,
                treatment=suite.treatment,
                utility=suite.utility,
                rewards=suite.rewards,
                click_model=suite.click_model,
                horizon=horizon,
                memory=memory,
                guarantees=suite.guarantees,
            )
        utility = as_utility(suite.utility)
        policy = self.custom.make_policy(treatment=suite.treatment, utility=utility, horizon=horizon)
        if memory is None or not isinstance(policy, CompiledPolicy):
            return policy
        return Forgetful(policy, memory)

    @cached_property
    def position_knowledge(self) -> PositionKnowledge:
        """What the policy knows or assumes about positions."""
        if self.name.endswith(ORDERED_SUFFIX) and self.custom is None:
            return "order given"
        if self.name in CONTEXTUAL_POLICIES:
            return "examination known" if self.name in (LinUCB.name, LinTS.name) else "nothing"
        policy = make_policy(self.name, kdd2012()) if self.custom is None else self.custom.make_policy()
        return _KNOWLEDGE[policy.assumptions.positions]

    def fits(self, suite: Suite) -> bool:
        """Return whether the policy can use what a suite tells it: user types or features, and guarantees.

        Examples
        --------
        >>> from banditrank.experiments._compare.suites import SUITES
        >>> [ComparedPolicy(name).fits(SUITES["linear-context"]) for name in ("lin-ucb", "random", "grab")]
        [True, True, False]
        """
        if suite.is_contextual:
            return self.custom is None and self.name in CONTEXTUAL_POLICY_NAMES
        keeps = not suite.guarantees or self.custom is not None or self.name in GUARANTEE_POLICIES
        return keeps and self.name not in CONTEXTUAL_POLICIES

    def absence(self, suite: Suite, horizon: int) -> str | None:
        """Return why the policy does not run in a suite; None if it does.

        Examples
        --------
        >>> from banditrank.experiments._compare.suites import SUITES
        >>> ComparedPolicy("pmed").absence(SUITES["many-items"], horizon=5_000)
        'too slow for a quick run'
        """
        if not self.fits(suite):
            if suite.is_contextual:
                return "it does not use features"
            return "it needs features" if self.name in CONTEXTUAL_POLICIES else "it keeps no guarantees"
        if self.custom is None:
            is_quick = horizon < suite.horizon
            is_skipped = is_quick and self.name in suite.skipped_when_quick
            reason = "too slow for a quick run" if is_skipped else None
            return "too slow" if self.name in suite.skipped else reason
        utility = as_utility(suite.utility)
        policy = self.custom.make_policy(treatment=suite.treatment, utility=utility, horizon=horizon)
        if policy.treatment != suite.treatment:
            return f"it has {policy.treatment} treatment only"
        if is_equal(policy.treatment) and str(policy.utility) != str(utility):
            return f"it maximises {policy.utility} utility only"
        return None if policy.guarantees == suite.guarantees else "it keeps other guarantees"


@dataclass(frozen=True, slots=True)
class PolicyVariant:
    """Policy and memory, such as a sliding window.

    Examples
    --------
    >>> PolicyVariant(ComparedPolicy("ucb-rank"), "window:10000").label
    'ucb-rank+window'
    """

    policy: ComparedPolicy
    memory: str | None = None

    @property
    def label(self) -> str:
        """Name in tables and of the job."""
        return self.policy.name if self.memory is None else f"{self.policy.name}{WINDOW_SUFFIX}"

    def make_policy(self, suite: Suite, problem: AnyProblem, horizon: int) -> AnyPolicy:
        """Return the policy for a suite, with the parameters of the problem that it needs to know."""
        return self.policy.make_policy(suite, problem, horizon, self.memory)


def find_policies(given: Sequence[str | PolicySource] = ()) -> list[ComparedPolicy]:
    """Return policies without duplicates and aliases: custom ones first, then in the order of the catalog.

    Parameters
    ----------
    given
        Names of built-in policies, import paths of custom ones such as ``my_module:MyPolicy``, policies,
        classes, or functions that return a policy. All of `ALL_POLICIES` if no built-in policy is named.

    Raises
    ------
    UnknownNameError
        If there is no policy of a name, or it cannot be compared.
    InvalidInputError
        If a custom policy cannot be imported or made, or its name, with the parameters that differ from
        those of another one of the name, is not valid or in use.

    Examples
    --------
    >>> [policy.name for policy in find_policies(["random", "grab", "auto"])]
    ['thompson-rank', 'grab', 'random']
    """
    named = set()
    customs: list[ComparedPolicy] = []
    for each in given:
        if isinstance(each, str) and not is_import_path(each):
            named.add(DEFAULT_POLICY if each == AUTO else each)
            if named - {*ALL_POLICIES, *CONTEXTUAL_POLICIES, *WRAPPED_NAMES, ALL_NAME}:
                known = (AUTO, *ALL_POLICIES, *CONTEXTUAL_POLICIES, ALL_NAME, "MODULE:NAME")
                raise UnknownNameError("policies", each, known)
            continue
        if (found := _find_custom(each)) not in customs:
            customs.append(found)
    custom: dict[str, ComparedPolicy] = {}
    for found in _with_parameters(customs):
        key = found.name.lower()  # a file name, which may not be case-sensitive
        if key in custom:
            other = custom[key].custom
            rule = f"must have a name of its own, and {found.name!r} is that of {getattr(other, 'label', '')}"
            raise InvalidInputError("policies", rule, getattr(found.custom, "label", ""))
        custom[key] = found
    is_all = not named or ALL_NAME in named
    built_in = [name for name in (*ALL_POLICIES, *CONTEXTUAL_POLICIES) if is_all or name in named]
    wrapped = [name for name in WRAPPED_NAMES if name in named and name not in built_in]
    return [*custom.values(), *map(ComparedPolicy, (*built_in, *wrapped))]


def _find_custom(given: str | PolicySource) -> ComparedPolicy:
    if isinstance(given, str):
        custom = CustomPolicy.from_import_path(given, "policies")
    else:
        custom = CustomPolicy.from_object(given, "policies")
    custom.make_policy()  # may raise
    name = check_name("policies", custom.name, custom.label)
    if name.lower() in (*POLICY_NAMES, *WRAPPED_NAMES):
        rule = f"must have a name of its own, and {name!r} is a built-in policy"
        raise InvalidInputError("policies", rule, custom.label)
    return ComparedPolicy(name, custom)


def _with_parameters(customs: Sequence[ComparedPolicy]) -> list[ComparedPolicy]:
    """Return custom policies; those of one name have the parameters that differ appended to it."""
    parameters = [own_parameters(each.custom.make_policy()) for each in customs if each.custom is not None]
    for each in parameters:
        each.pop("class", None)
    found = []
    suffixes = distinct_suffixes([policy.name.lower() for policy in customs], parameters)
    for policy, suffix in zip(customs, suffixes, strict=True):
        name = f"{policy.name}{re.sub(r'[^A-Za-z0-9._-]+', '-', suffix)}"
        label = "" if policy.custom is None else policy.custom.label
        found.append(replace(policy, name=check_name("policies", name, label)))
    return found


def policy_variants(suite: Suite, policies: Sequence[ComparedPolicy], horizon: int) -> list[PolicyVariant]:
    """Return the policies that run in a suite; where the problem changes, each also with a window.

    Policies in plain Python have no window.
    """
    window = f"window:{max(horizon // WINDOWS_PER_HORIZON, 1)}"
    fitting = [policy for policy in policies if policy.fits(suite)]
    present = [policy for policy in fitting if policy.absence(suite, horizon) is None] or fitting
    windowed = [policy for policy in present if suite.is_changing and _has_window(policy)]
    return [*map(PolicyVariant, present), *(PolicyVariant(policy, window) for policy in windowed)]


def _has_window(policy: ComparedPolicy) -> bool:
    if policy.custom is not None:
        return isinstance(policy.custom.make_policy(), CompiledPolicy)
    return policy.name != RANDOM_POLICY


def position_knowledge(policies: Sequence[ComparedPolicy]) -> dict[str, PositionKnowledge]:
    """Return what policies know or assume about positions, by label, with and without a window.

    Examples
    --------
    >>> position_knowledge([ComparedPolicy("pbm-ucb")])
    {'pbm-ucb': 'examination known', 'pbm-ucb+window': 'examination known'}
    """
    return {
        f"{policy.name}{suffix}": policy.position_knowledge
        for policy in policies
        for suffix in ("", WINDOW_SUFFIX)
    }
