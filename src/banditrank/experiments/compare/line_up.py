"""Who takes part: policies by name, what they are told of a world, and what they may forget."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from banditrank.errors import UnknownNameError
from banditrank.experiments.compare.suites import WINDOWS, Suite
from banditrank.model.catalog import kdd2012
from banditrank.model.problem import Problem
from banditrank.model.timeline import Timeline
from banditrank.policies.base import CompiledPolicy
from banditrank.policies.catalog import AUTO, ORDERED_SUFFIX, POLICY_NAMES, make_policy
from banditrank.policies.oracle import Oracle
from banditrank.policies.thompson_rank import ThompsonRank
from banditrank.policies.uniform import UniformRandom

Knowledge: TypeAlias = Literal["nothing", "order assumed", "order given", "examination known"]

OURS = ThompsonRank.name  # the default policy, which AUTO stands for

EVERYBODY = tuple(name for name in POLICY_NAMES if name not in (AUTO, Oracle.name))
"""Who takes part unless others are named: the oracle has no regret to compare."""

FOR_SCALE = UniformRandom.name  # what a policy must beat: never the best of anything

WINDOWED = "+window"  # after the name of a policy that forgets


@dataclass(frozen=True, slots=True)
class Entrant:
    """A policy in a suite.

    Examples
    --------
    >>> Entrant("ucb-rank", "window:10000").label
    'ucb-rank+window'
    """

    name: str
    memory: str | None = None

    @property
    def label(self) -> str:
        """What to call it."""
        return self.name if self.memory is None else f"{self.name}{WINDOWED}"


def find_names(names: Sequence[str] = ()) -> list[str]:
    """Return names of policies, each once and in the catalog's order; all of them for none.

    Examples
    --------
    >>> find_names(["random", "grab", "auto"])
    ['thompson-rank', 'grab', 'random']
    """
    meant = [OURS if name == AUTO else name for name in names]
    for name in meant:
        if name not in EVERYBODY:
            raise UnknownNameError("policies", name, (AUTO, *EVERYBODY))
    return [name for name in EVERYBODY if name in meant or not meant]


def entrants(suite: Suite, names: Sequence[str], horizon: int) -> list[Entrant]:
    """Return who takes part in a suite: where worlds change, each policy also with a window."""
    window = f"window:{max(horizon // WINDOWS, 1)}"
    quick = horizon < suite.horizon
    present = [name for name in names if not (quick and name in suite.too_slow)] or names
    again = [name for name in present if suite.forgetting and name != FOR_SCALE]
    return [*map(Entrant, present), *(Entrant(name, window) for name in again)]


def make_variant_policy(
    entrant: Entrant, suite: Suite, problem: Problem | Timeline, horizon: int
) -> CompiledPolicy:
    """Return the policy, told what it takes for known."""
    return make_policy(
        entrant.name,
        problem,
        treatment=suite.treatment,
        utility=suite.utility,
        rewards=suite.rewards,
        click_model=suite.click_model,
        horizon=horizon,
        memory=entrant.memory,
    )


@cache
def knowledge(label: str) -> Knowledge:
    """Return what a policy knows of positions, or takes for granted.

    Examples
    --------
    >>> [knowledge(label) for label in ("grab+window", "top-rank", "top-rank-ordered", "pbm-ucb")]
    ['nothing', 'order assumed', 'order given', 'examination known']
    """
    name = label.removesuffix(WINDOWED)
    positions = make_policy(name, kdd2012()).assumptions.positions
    if positions == "order":
        return "order given" if name.endswith(ORDERED_SUFFIX) else "order assumed"
    return "examination known" if positions == "examination" else "nothing"
