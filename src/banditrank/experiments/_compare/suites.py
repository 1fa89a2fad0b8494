"""Suites: problems that are difficult in different ways."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, describe_error
from banditrank.experiments._compare.names import check_name
from banditrank.experiments._formatting import join_words
from banditrank.model._catalog import contextual_problem, kdd2012
from banditrank.model._changes import make_timeline
from banditrank.model._click_models import (
    CASCADE,
    SINGLE_LOOK,
    ClickModel,
    PositionBased,
    as_click_model,
)
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._generators import make_problem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, BetaRewards, Rewards, as_rewards
from banditrank.model._timeline import Timeline
from banditrank.policies._base import Treatment, check_treatment, draws_lotteries
from banditrank.policies._policy_guarantees import check_guarantees
from banditrank.solvers._lottery.guarantees import Guarantee, LeastExposure
from banditrank.utilities._utility import as_utility

REPLICATIONS, QUICK_REPLICATIONS = 12, 4
HORIZON, QUICK_HORIZON = 100_000, 10_000
LOW_CLICK_RATE = 0.05  # times the click rates of the synthetic problem
GUARANTEED_EXPOSURE = 0.01  # of each item
WINDOWS_PER_HORIZON = 10  # of policies with a sliding window


AnyProblem: TypeAlias = Problem | Timeline | ContextualProblem
"""A problem, one that changes, or one with features."""

ProblemSource: TypeAlias = AnyProblem | Callable[[int], AnyProblem]
"""A problem, or a function that returns it, given the horizon."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Problem and the size of its simulations.

    Parameters
    ----------
    name
        Name in commands and file names: letters, digits, hyphens, dots and underscores.
    problem
        The problem, one that changes (`Timeline`), one with features (`ContextualProblem`), or a function
        that returns it, given the horizon.
    title
        Heading in the report; the name by default.
    description
        What the problem is and why it is difficult, in two sentences; its size by default.
    treatment, utility
        Objective of the policies.
    guarantees
        What lotteries keep, under ``equal-lottery`` and ``personalized``. Policies without lotteries do not
        run then.
    rewards, click_model
        User behaviour, or its name.
    horizon, replications
        Size of a full run.
    quick_horizon, quick_replications
        Size of a quick run; not above that of a full run.
    skipped_when_quick
        Names of policies that a quick run leaves out.

    Raises
    ------
    InvalidInputError
        If a value is not valid.

    Examples
    --------
    >>> from banditrank import kdd2012
    >>> Suite(name="ads", problem=kdd2012(), treatment="equal", utility="nash").description
    '2 user types, 5 items and 2 positions.'
    """

    name: str
    problem: ProblemSource
    title: str = ""
    description: str = ""
    treatment: Treatment = "personalized"
    utility: str = "utilitarian"
    guarantees: tuple[Guarantee, ...] = ()
    rewards: Rewards = field(default_factory=BernoulliRewards)
    click_model: ClickModel = SINGLE_LOOK
    horizon: int = HORIZON
    replications: int = REPLICATIONS
    quick_horizon: int = QUICK_HORIZON
    quick_replications: int = QUICK_REPLICATIONS
    skipped_when_quick: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the values, and fill in the title and the description."""
        check_name("suite", self.name, "this suite")
        check_treatment(self.treatment)
        values: dict[str, object] = {
            "utility": str(as_utility(self.utility)),
            "guarantees": check_guarantees(self.guarantees, self.treatment),
            "rewards": as_rewards(self.rewards),
            "click_model": as_click_model(self.click_model),
            "title": self.title or self.name,
        }
        for size in ("horizon", "replications"):
            full, quick = (check_integer(name, getattr(self, name), 1) for name in (size, f"quick_{size}"))
            values |= {size: full, f"quick_{size}": min(full, quick)}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not self.description:
            problem = self.make_problem(self.quick_horizon)
            object.__setattr__(self, "description", describe_size(problem))

    def make_problem(self, horizon: int) -> AnyProblem:
        """Return the problem for a number of rounds.

        Raises
        ------
        InvalidInputError
            If the function fails or returns something else.
        """
        if isinstance(self.problem, AnyProblem):
            return self.problem
        rule = "must be a problem, or a function that returns one given the horizon"
        if not callable(self.problem):
            raise InvalidInputError("suite", rule, self.problem)
        try:
            problem = self.problem(horizon)
        except Exception as error:
            raise InvalidInputError("suite", f"{rule} ({describe_error(error)})", self.name) from error
        if not isinstance(problem, AnyProblem):
            raise InvalidInputError("suite", rule, problem)
        return problem

    @cached_property
    def has_scores(self) -> bool:
        """Whether the suite counts in the leaderboard: not if few policies are made for it."""
        return not self.is_contextual and not draws_lotteries(self.treatment, self.guarantees)

    @cached_property
    def is_changing(self) -> bool:
        """Whether the problem changes over time; policies then also run with a sliding window."""
        problem = self.make_problem(self.quick_horizon)
        return isinstance(problem, Timeline) and len(problem.problems) > 1

    @cached_property
    def is_contextual(self) -> bool:
        """Whether users and items have features, which only some policies use."""
        return isinstance(self.make_problem(self.quick_horizon), ContextualProblem)

    @property
    def quick_scale(self) -> str:
        """Size of a quick run relative to a full one, in words."""
        without = f", without {join_words(self.skipped_when_quick)}" if self.skipped_when_quick else ""
        return (
            f"{self.quick_replications} of {self.replications} replications of {self.quick_horizon:,} of "
            f"{self.horizon:,} rounds{without}"
        )


def describe_size(problem: AnyProblem) -> str:
    """Return the size of a problem as a sentence.

    Examples
    --------
    >>> describe_size(kdd2012())
    '2 user types, 5 items and 2 positions.'
    """
    sizes = {"item": problem.n_items, "position": problem.n_positions}
    if isinstance(problem, ContextualProblem):
        sizes = {"feature": problem.n_features, **sizes}
    else:
        sizes = {"user type": problem.n_user_types, **sizes}
    counted = [f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in sizes.items()]
    changes = (
        f" The problem changes {len(problem.problems) - 1} times." if isinstance(problem, Timeline) else ""
    )
    return f"{join_words(counted)}.{changes}"


def synthetic() -> Problem:
    """Return the problem of the paper's synthetic experiment: N = 3, M = 20, K = 4."""
    return make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=0)


def rare_clicks() -> Problem:
    """Return the synthetic problem with a twentieth of the click rates."""
    problem = synthetic()
    return Problem(
        problem.arrival_rates,
        problem.position_preferences,
        LOW_CLICK_RATE * problem.item_means,
        name="rare-clicks",
    )


def many_items() -> Problem:
    """Return a problem of one user type and 200 items, with click rates of about 1%, of the best about 5%."""
    rng = np.random.default_rng(0)
    means = np.minimum(0.01 * np.exp(0.6 * rng.standard_normal((1, 200))), 0.2)
    return Problem([1.0], rng.dirichlet(np.full(4, 2.0), 1), means, name="many-items")


def from_the_top(clicks: float = 1.0) -> Problem:
    """Return the synthetic problem with preferences that decrease from the first position to the last.

    Parameters
    ----------
    clicks
        Factor of the click rates.
    """
    problem = synthetic()
    preferences = np.array([1.0, 0.7, 0.5, 0.35])
    return Problem(
        problem.arrival_rates,
        np.tile(preferences / preferences.sum(), (problem.n_user_types, 1)),
        clicks * problem.item_means,
        name="from-the-top",
    )


def _conflict() -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)


def _changing(changes: str) -> Callable[[int], Timeline]:
    return lambda horizon: make_timeline(synthetic(), changes, horizon, seed=1)


_TABLE_1 = "Two user types, five ads and two positions, of which the second is examined more often"
_WINDOWED = (
    "Every policy enters twice: with all of the past, and with a sliding window of a tenth of the rounds."
)

ALL_SUITES = (
    Suite(
        name="table1",
        title="Table 1, personalized",
        description=f"The problem that the paper estimates from the log of a search engine. {_TABLE_1}.",
        problem=lambda _: kdd2012(),
    ),
    Suite(
        name="table1-equal",
        title="Table 1, equal, utilitarian",
        description=f"One ranking for all users, for the most clicks in total. {_TABLE_1}.",
        problem=lambda _: kdd2012(),
        treatment="equal",
    ),
    Suite(
        name="table1-nash",
        title="Table 1, equal, Nash",
        description="One ranking for all users that is fair to both user types, which policies that maximise "
        f"clicks do not seek. {_TABLE_1}.",
        problem=lambda _: kdd2012(),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="synthetic",
        title="The paper's synthetic problem",
        description="Three user types, 20 items and four positions, all drawn at random: each type examines "
        "positions in its own order. Rewards are clicks, 0 or 1.",
        problem=lambda _: synthetic(),
    ),
    Suite(
        name="graded",
        title="The synthetic problem with graded rewards",
        description="The same problem with the rewards of the paper's own experiment: each examination earns "
        "a Beta reward. Rewards then reveal which positions are examined; most policies of other papers do "
        "not use that.",
        problem=lambda _: synthetic(),
        rewards=BetaRewards(),
    ),
    Suite(
        name="low-clicks",
        title="Low click rates",
        description="The synthetic problem with a twentieth of the click rates, as in advertising. A policy "
        "that waits for a click in every cell waits for most of the run.",
        problem=lambda _: rare_clicks(),
    ),
    Suite(
        name="many-items",
        title="Many items",
        description="200 items in four positions, clicked in about 1% of examinations, and one user type. "
        "Items with few clicks must not cost many rounds of exploration.",
        problem=lambda _: many_items(),
        replications=6,
        quick_horizon=5_000,
        quick_replications=2,
        skipped_when_quick=("pmed",),
    ),
    Suite(
        name="conflict",
        title="Conflicting types",
        description="Every item is the favourite of one of three user types and of little interest to the "
        "others. Pooling clicks over types hides what each type likes.",
        problem=lambda _: _conflict(),
    ),
    Suite(
        name="conflict-nash",
        title="Conflicting types, equal, Nash",
        description="One ranking for all users where every item pleases only one of three user types. The "
        "fairest ranking differs from the one with the most clicks.",
        problem=lambda _: _conflict(),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="conflict-lottery",
        title="Conflicting types, one lottery for all, Nash",
        description="The same problem with one lottery over rankings for all users: equal odds instead of an "
        "equal ranking. Regret is against the best lottery, which is better than every ranking; policies "
        "without lotteries, all but thompson-rank, greedy-rank and ucb-rank, count with their ranking.",
        problem=lambda _: _conflict(),
        treatment="equal-lottery",
        utility="nash",
    ),
    Suite(
        name="maximin-lottery",
        title="Conflicting types, one lottery for all, maximin",
        description="One lottery over rankings for all users, for the user type that is worst off. Rankings "
        "take turns, so that no type is always last.",
        problem=lambda _: _conflict(),
        treatment="equal-lottery",
        utility="maximin",
    ),
    Suite(
        name="exposure",
        title="Guaranteed exposure of items",
        description="One lottery over rankings for all users, in which at least "
        f"{GUARANTEED_EXPOSURE:.0%} of users look at each item, whatever its clicks. Regret is against the "
        "best lottery that keeps this; policies without lotteries cannot.",
        problem=lambda _: _conflict(),
        treatment="equal-lottery",
        utility="nash",
        guarantees=(LeastExposure(GUARANTEED_EXPOSURE),),
    ),
    Suite(
        name="position-based",
        title="The classic position-based model",
        description="Users examine each position independently, the first always and lower ones less and "
        "less, and may click several items. Policies that assume this order have an advantage here.",
        problem=lambda _: from_the_top(),
        click_model=PositionBased(),
    ),
    Suite(
        name="cascade",
        title="The cascade model",
        description="Users read from the top and leave at the first click; click rates are 0.3 times those "
        "of the synthetic problem. Positions below a click are not examined, which policies for the "
        "single-look model do not know.",
        problem=lambda _: from_the_top(0.3),
        click_model=CASCADE,
    ),
    Suite(
        name="item-jumps",
        title="Drift: tastes that jump",
        description="The synthetic problem, whose items exchange their click rates at three moments. "
        + _WINDOWED,
        problem=_changing("item-jumps:3"),
    ),
    Suite(
        name="item-drift",
        title="Drift: tastes that shift",
        description="The synthetic problem, whose items slowly turn into others and back. " + _WINDOWED,
        problem=_changing("item-drift:1"),
    ),
    Suite(
        name="turnover",
        title="Drift: items that come and go",
        description="The synthetic problem, in which the two oldest items are replaced ten times. "
        + _WINDOWED,
        problem=_changing("turnover:10"),
    ),
    Suite(
        name="linear-context",
        title="Users with features, linear appeal",
        description="Every user is different: 100 items in five positions, whose appeal to a user is linear "
        "in 20 joint features of both. Policies without features see clusters of users.",
        problem=lambda _: contextual_problem("linear"),
        replications=6,
        quick_horizon=3_000,
        quick_replications=2,
    ),
    Suite(
        name="logistic-context",
        title="Users with features, logistic appeal",
        description="The same with a logistic appeal. LinUCB and LinTS assume that it is linear.",
        problem=lambda _: contextual_problem("logistic"),
        replications=6,
        quick_horizon=3_000,
        quick_replications=2,
    ),
)

SUITES = {suite.name: suite for suite in ALL_SUITES}
