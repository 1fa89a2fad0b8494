"""Policies of a comparison, with and without a sliding window."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from banditrank.errors import UnknownNameError
from banditrank.experiments._compare.suites import WINDOWS_PER_HORIZON, Suite
from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._catalog import AUTO, ORDERED_SUFFIX, POLICY_NAMES, make_policy
from banditrank.policies._oracle import Oracle
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.policies._uniform import UniformRandom

PositionKnowledge: TypeAlias = Literal["nothing", "order assumed", "order given", "examination known"]

DEFAULT_POLICY = ThompsonRank.name  # AUTO is an alias of it

ALL_POLICIES = tuple(name for name in POLICY_NAMES if name not in (AUTO, Oracle.name))
"""Policies that are compared by default; the oracle has no regret."""

RANDOM_POLICY = UniformRandom.name  # reference for scale, never counted as the best

WINDOW_SUFFIX = "+window"  # of the label of a policy with a sliding window


@dataclass(frozen=True, slots=True)
class PolicyVariant:
    """Policy name and memory, such as a sliding window.

    Examples
    --------
    >>> PolicyVariant("ucb-rank", "window:10000").label
    'ucb-rank+window'
    """

    name: str
    memory: str | None = None

    @property
    def label(self) -> str:
        """Name in tables and of the job."""
        return self.name if self.memory is None else f"{self.name}{WINDOW_SUFFIX}"

    def make_policy(self, suite: Suite, problem: Problem | Timeline, horizon: int) -> CompiledPolicy:
        """Return the policy for a suite, with the parameters of the problem that it needs to know."""
        return make_policy(
            self.name,
            problem,
            treatment=suite.treatment,
            utility=suite.utility,
            rewards=suite.rewards,
            click_model=suite.click_model,
            horizon=horizon,
            memory=self.memory,
        )


def find_policy_names(names: Sequence[str] = ()) -> list[str]:
    """Return policy names without duplicates and aliases, in the order of the catalog.

    Parameters
    ----------
    names
        Names of policies; all if empty.

    Raises
    ------
    UnknownNameError
        If there is no policy of a name, or it cannot be compared.

    Examples
    --------
    >>> find_policy_names(["random", "grab", "auto"])
    ['thompson-rank', 'grab', 'random']
    """
    resolved = [DEFAULT_POLICY if name == AUTO else name for name in names]
    for name in resolved:
        if name not in ALL_POLICIES:
            raise UnknownNameError("policies", name, (AUTO, *ALL_POLICIES))
    return [name for name in ALL_POLICIES if name in resolved or not resolved]


def policy_variants(suite: Suite, names: Sequence[str], horizon: int) -> list[PolicyVariant]:
    """Return the policies that run in a suite; where the problem changes, each also with a window."""
    window = f"window:{max(horizon // WINDOWS_PER_HORIZON, 1)}"
    quick = horizon < suite.horizon
    present = [name for name in names if not (quick and name in suite.skipped_when_quick)] or names
    windowed = [name for name in present if suite.is_changing and name != RANDOM_POLICY]
    return [*map(PolicyVariant, present), *(PolicyVariant(name, window) for name in windowed)]


@cache
def position_knowledge(label: str) -> PositionKnowledge:
    """Return what a policy knows or assumes about positions.

    Examples
    --------
    >>> [position_knowledge(label) for label in ("grab+window", "top-rank", "top-rank-ordered", "pbm-ucb")]
    ['nothing', 'order assumed', 'order given', 'examination known']
    """
    name = label.removesuffix(WINDOW_SUFFIX)
    positions = make_policy(name, kdd2012()).assumptions.positions
    if positions == "order":
        return "order given" if name.endswith(ORDERED_SUFFIX) else "order assumed"
    return "examination known" if positions == "examination" else "nothing"
