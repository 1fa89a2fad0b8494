"""Suites: problems that are difficult in different ways."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, describe_error
from banditrank.experiments._compare.names import check_name
from banditrank.experiments._formatting import join_words
from banditrank.model._carousel import read_carousel
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
from banditrank.model._generators import CAROUSEL, make_problem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards, BetaRewards, Rewards, as_rewards
from banditrank.model._timeline import Timeline
from banditrank.policies._base import Treatment, check_treatment, check_utility, draws_lotteries
from banditrank.policies._policy_guarantees import check_guarantees
from banditrank.solvers._lottery.guarantees import Guarantee, LeastExposure

REPLICATIONS, QUICK_REPLICATIONS = 12, 4
HORIZON, QUICK_HORIZON = 100_000, 10_000
LOW_CLICK_RATE = 0.05  # times the click rates of the synthetic problem
GUARANTEED_EXPOSURE = 0.01  # of each item
N_ORDERS = 4  # of items, among the replications of a suite
HELD_OUT_SEED = 100  # added to the seeds of problems, and of comparisons on the same problem
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
    held_out
        Another problem of the same kind, for `held_out_copy`; None if there is none.
    is_shuffled
        Whether replications have the items in different random orders, drawn by the seed of the comparison.
        Policies and guarantees cannot number them then.
    is_held_out
        Whether it is a copy that `held_out_copy` returned.
    seed_offset
        Added to the seed of the comparison, of users and of orders of items.
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
    skipped, skipped_when_quick
        Names of policies that are too slow for the suite, or for a quick run of it.

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
    held_out: ProblemSource | None = None
    is_shuffled: bool = False
    is_held_out: bool = False
    seed_offset: int = 0
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
    skipped: tuple[str, ...] = ()
    skipped_when_quick: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the values, and fill in the title and the description."""
        check_name("suite", self.name, "this suite")
        check_treatment(self.treatment)
        values: dict[str, object] = {
            "utility": str(check_utility(self.utility, self.treatment)),
            "guarantees": check_guarantees(self.guarantees, self.treatment),
            "rewards": as_rewards(self.rewards),
            "click_model": as_click_model(self.click_model),
            "title": self.title or self.name,
        }
        for size in ("horizon", "replications"):
            full, quick = (check_integer(name, getattr(self, name), 1) for name in (size, f"quick_{size}"))
            values |= {size: full, f"quick_{size}": min(full, quick)}
        values["seed_offset"] = check_integer("seed_offset", self.seed_offset, 0)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for guarantee in self.guarantees:
            if self.is_shuffled and isinstance(guarantee, LeastExposure) and guarantee.items is not None:
                raise InvalidInputError(
                    "guarantees", "must hold for all items if they are shuffled", guarantee
                )
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

    def held_out_copy(self) -> "Suite":
        """Return the suite with its held-out problem, on which no constant of a policy was chosen.

        If the suite has the same problem, such as Table 1, the copy has other users and orders of items.

        Raises
        ------
        InvalidInputError
            If the suite has none.

        Examples
        --------
        >>> SUITES["conflict"].held_out_copy().make_problem(1000).name
        'conflict-3x20x4-seed101'
        """
        if self.held_out is None:
            raise InvalidInputError("suite", "must have a held-out problem", self.name)
        title = f"{self.title}: held out"
        copy = replace(self, title=title, problem=self.held_out, held_out=None, is_held_out=True)
        is_same = copy.make_problem(self.horizon) == self.make_problem(self.horizon)
        return replace(copy, seed_offset=HELD_OUT_SEED) if is_same else copy

    def make_problems(self, horizon: int, *, seed: int, n_replications: int) -> list[AnyProblem]:
        """Return the problems that share the replications: with items in other orders each, if shuffled.

        Policies that prefer early items among equal ones gain or lose by the order in which a problem has
        them.
        """
        problem = self.make_problem(horizon)
        if not self.is_shuffled:
            return [problem]
        n_orders = next(n for n in range(N_ORDERS, 0, -1) if n_replications % n == 0)
        return [_shuffled(problem, (seed, number)) for number in range(n_orders)]

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


def _shuffled(problem: AnyProblem, seed: tuple[int, int]) -> AnyProblem:
    """Return a problem with its items in a random order; one with features is as it was.

    Features are drawn at random for each item, so that their order means nothing.
    """
    if isinstance(problem, ContextualProblem):
        return problem
    ranks = dict(zip(problem.items, np.random.default_rng(seed).permutation(problem.n_items), strict=True))
    if isinstance(problem, Timeline):
        problems = [_in_order(each, ranks) for each in problem.problems]
        return Timeline(problems, problem.starts, name=problem.name)
    return _in_order(problem, ranks)


def _in_order(problem: Problem, ranks: Mapping[str, int]) -> Problem:
    order = np.argsort([ranks[item] for item in problem.items])
    return Problem.from_dict(
        {
            **problem.to_dict(),
            "items": [problem.items[number] for number in order],
            "item_means": problem.item_means[:, order],
        }
    )


def synthetic(seed: int = 0) -> Problem:
    """Return the problem of the paper's synthetic experiment: N = 3, M = 20, K = 4."""
    return make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=seed)


def rare_clicks(seed: int = 0) -> Problem:
    """Return the synthetic problem with a twentieth of the click rates."""
    problem = synthetic(seed)
    return Problem(
        problem.arrival_rates,
        problem.position_preferences,
        LOW_CLICK_RATE * problem.item_means,
        name="rare-clicks",
    )


def many_items(seed: int = 0) -> Problem:
    """Return a problem of one user type and 200 items, with click rates of about 1%, of the best about 5%."""
    rng = np.random.default_rng(seed)
    means = np.minimum(0.01 * np.exp(0.6 * rng.standard_normal((1, 200))), 0.2)
    return Problem([1.0], rng.dirichlet(np.full(4, 2.0), 1), means, name="many-items")


def from_the_top(seed: int = 0, *, clicks: float = 1.0) -> Problem:
    """Return the synthetic problem with preferences that decrease from the first position to the last.

    Parameters
    ----------
    seed
        Seed of the synthetic problem.
    clicks
        Factor of the click rates.
    """
    problem = synthetic(seed)
    preferences = np.array([1.0, 0.7, 0.5, 0.35])
    return Problem(
        problem.arrival_rates,
        np.tile(preferences / preferences.sum(), (problem.n_user_types, 1)),
        clicks * problem.item_means,
        name="from-the-top",
    )


def long_tail(seed: int = 0) -> Problem:
    """Return a small carousel: six user types, 200 items with a long tail, and 12 positions."""
    return make_problem("long-tail", n_user_types=6, n_items=200, n_positions=12, seed=seed)


def _conflict(seed: int) -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=seed)


def _changing(changes: str, horizon: int, seed: int) -> Timeline:
    return make_timeline(synthetic(seed), changes, horizon, seed=seed + 1)


def _problems(make: Callable[[int], AnyProblem], seed: int = 0) -> dict[str, Any]:
    """Return the problem and the held-out problem of a suite, of different seeds."""
    return {
        "problem": lambda _: make(seed),
        "held_out": lambda _: make(seed + HELD_OUT_SEED),
        "is_shuffled": True,
    }


def _timelines(changes: str) -> dict[str, Any]:
    """Return problems that change, likewise."""
    return {
        "problem": partial(_changing, changes, seed=0),
        "held_out": partial(_changing, changes, seed=HELD_OUT_SEED),
        "is_shuffled": True,
    }


def carousel_suite(directory: str) -> Suite:
    """Return the suite of a carousel, given the directory of its files.

    Raises
    ------
    InvalidInputError
        If they cannot be read.
    """
    problem = read_carousel(directory)
    return Suite(
        name=CAROUSEL,
        title="A real carousel",
        description=f"{describe_size(problem)} Playlists of a music streaming service; most are seldom "
        "streamed. Users look from the first position on and leave at the first stream.",
        problem=problem,
        held_out=problem,
        is_shuffled=True,
        click_model=CASCADE,
        horizon=54_000,
        replications=6,
        quick_horizon=5_400,
        quick_replications=2,
        skipped=("pmed", "ftrl-pbm"),
    )


_TABLE_1 = "Two user types, five ads and two positions, of which the second is examined more often"
_WINDOWED = (
    "Every policy enters twice: with all of the past, and with a sliding window of a tenth of the rounds."
)

ALL_SUITES = (
    Suite(
        name="table1",
        title="Table 1, personalized",
        description=f"The problem that the paper estimates from the log of a search engine. {_TABLE_1}.",
        **_problems(lambda _: kdd2012()),
    ),
    Suite(
        name="table1-equal",
        title="Table 1, equal, utilitarian",
        description=f"One ranking for all users, for the most clicks in total. {_TABLE_1}.",
        **_problems(lambda _: kdd2012()),
        treatment="equal",
    ),
    Suite(
        name="table1-nash",
        title="Table 1, equal, Nash",
        description="One ranking for all users that is fair to both user types, which policies that maximise "
        f"clicks do not seek. {_TABLE_1}.",
        **_problems(lambda _: kdd2012()),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="synthetic",
        title="The paper's synthetic problem",
        description="Three user types, 20 items and four positions, all drawn at random: each type examines "
        "positions in its own order. Rewards are clicks, 0 or 1.",
        **_problems(synthetic),
    ),
    Suite(
        name="graded",
        title="The synthetic problem with graded rewards",
        description="The same problem with the rewards of the paper's own experiment: each examination earns "
        "a Beta reward. Rewards then reveal which positions are examined; most policies of other papers do "
        "not use that.",
        **_problems(synthetic),
        rewards=BetaRewards(),
    ),
    Suite(
        name="low-clicks",
        title="Low click rates",
        description="The synthetic problem with a twentieth of the click rates, as in advertising. A policy "
        "that waits for a click in every cell waits for most of the run.",
        **_problems(rare_clicks),
    ),
    Suite(
        name="many-items",
        title="Many items",
        description="200 items in four positions, clicked in about 1% of examinations, and one user type. "
        "Items with few clicks must not cost many rounds of exploration.",
        **_problems(many_items),
        replications=6,
        quick_horizon=5_000,
        quick_replications=2,
        skipped_when_quick=("pmed",),
    ),
    Suite(
        name="long-tail",
        title="A carousel with a long tail",
        description="200 items in 12 positions, most of them seldom clicked, and six user types whose tastes "
        "are much alike. Users look from the first position on and leave at the first click, as in the "
        "carousel of a music streaming service.",
        **_problems(long_tail),
        click_model=CASCADE,
        horizon=54_000,
        replications=6,
        quick_horizon=5_400,
        quick_replications=2,
        skipped=("pmed",),
        skipped_when_quick=("ftrl-pbm",),
    ),
    Suite(
        name="conflict",
        title="Conflicting types",
        description="Every item is the favourite of one of three user types and of little interest to the "
        "others. Pooling clicks over types hides what each type likes.",
        **_problems(_conflict, seed=1),
    ),
    Suite(
        name="conflict-nash",
        title="Conflicting types, equal, Nash",
        description="One ranking for all users where every item pleases only one of three user types. The "
        "fairest ranking differs from the one with the most clicks.",
        **_problems(_conflict, seed=1),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="conflict-lottery",
        title="Conflicting types, one lottery for all, Nash",
        description="The same problem with one lottery over rankings for all users: equal odds instead of an "
        "equal ranking. Regret is against the best lottery, which is better than every ranking; policies "
        "without lotteries, all but thompson-rank, greedy-rank and ucb-rank, count with their ranking.",
        **_problems(_conflict, seed=1),
        treatment="equal-lottery",
        utility="nash",
    ),
    Suite(
        name="maximin-lottery",
        title="Conflicting types, one lottery for all, maximin",
        description="One lottery over rankings for all users, for the user type that is worst off. Rankings "
        "take turns, so that no type is always last.",
        **_problems(_conflict, seed=1),
        treatment="equal-lottery",
        utility="maximin",
    ),
    Suite(
        name="exposure",
        title="Guaranteed exposure of items",
        description="One lottery over rankings for all users, in which at least "
        f"{GUARANTEED_EXPOSURE:.0%} of users look at each item, whatever its clicks. Regret is against the "
        "best lottery that keeps this; policies without lotteries cannot.",
        **_problems(_conflict, seed=1),
        treatment="equal-lottery",
        utility="nash",
        guarantees=(LeastExposure(GUARANTEED_EXPOSURE),),
    ),
    Suite(
        name="position-based",
        title="The classic position-based model",
        description="Users examine each position independently, the first always and lower ones less and "
        "less, and may click several items. Policies that assume this order have an advantage here.",
        **_problems(from_the_top),
        click_model=PositionBased(),
    ),
    Suite(
        name="cascade",
        title="The cascade model",
        description="Users read from the top and leave at the first click; click rates are 0.3 times those "
        "of the synthetic problem. Positions below a click are not examined, which policies for the "
        "single-look model do not know.",
        **_problems(partial(from_the_top, clicks=0.3)),
        click_model=CASCADE,
    ),
    Suite(
        name="item-jumps",
        title="Drift: tastes that jump",
        description="The synthetic problem, whose items exchange their click rates at three moments. "
        + _WINDOWED,
        **_timelines("item-jumps:3"),
    ),
    Suite(
        name="item-drift",
        title="Drift: tastes that shift",
        description="The synthetic problem, whose items slowly turn into others and back. " + _WINDOWED,
        **_timelines("item-drift:1"),
    ),
    Suite(
        name="turnover",
        title="Drift: items that come and go",
        description="The synthetic problem, in which the two oldest items are replaced ten times. "
        + _WINDOWED,
        **_timelines("turnover:10"),
    ),
    Suite(
        name="linear-context",
        title="Users with features, linear appeal",
        description="Every user is different: 100 items in five positions, whose appeal to a user is linear "
        "in 20 joint features of both. Policies without features see clusters of users.",
        **_problems(partial(contextual_problem, "linear")),
        replications=6,
        quick_horizon=3_000,
        quick_replications=2,
    ),
    Suite(
        name="logistic-context",
        title="Users with features, logistic appeal",
        description="The same with a logistic appeal. LinUCB and LinTS assume that it is linear.",
        **_problems(partial(contextual_problem, "logistic")),
        replications=6,
        quick_horizon=3_000,
        quick_replications=2,
    ),
)

SUITES = {suite.name: suite for suite in ALL_SUITES}
