"""The suites: worlds that are hard in different ways."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from banditrank.experiments.words import listed
from banditrank.model.catalog import kdd2012
from banditrank.model.changes import make_timeline
from banditrank.model.click_models import CASCADE, SINGLE_LOOK, ClickModel, PositionBased
from banditrank.model.generators import make_problem
from banditrank.model.problem import Problem
from banditrank.model.rewards import BernoulliRewards, BetaRewards, Rewards
from banditrank.model.timeline import Timeline
from banditrank.policies.base import Treatment

REPLICATIONS, QUICK_REPLICATIONS = 12, 4
HORIZON, QUICK_HORIZON = 100_000, 10_000
LOW = 0.05  # what click rates are multiplied with where they are low
WINDOWS = 10  # in a horizon, where policies may forget


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A world, and for how long it is learned.

    Parameters
    ----------
    name, title
        What to call it, in commands and for people.
    why
        Why it is there, and what it is, in two sentences.
    make
        Returns the world, given the horizon.
    treatment, utility
        What policies are to be good at.
    rewards, click_model
        How users behave.
    horizon, replications, quick_horizon, quick_replications
        How much is run, and in a quick run.
    forgetting
        Whether policies also enter with a window of the past.
    too_slow
        Names of policies that a quick run leaves out.
    """

    name: str
    title: str
    why: str
    make: Callable[[int], Problem | Timeline]
    treatment: Treatment = "personalized"
    utility: str = "utilitarian"
    rewards: Rewards = field(default_factory=BernoulliRewards)
    click_model: ClickModel = SINGLE_LOOK
    horizon: int = HORIZON
    replications: int = REPLICATIONS
    quick_horizon: int = QUICK_HORIZON
    quick_replications: int = QUICK_REPLICATIONS
    forgetting: bool = False
    too_slow: tuple[str, ...] = ()

    @property
    def cut(self) -> str:
        """What a quick run leaves out."""
        without = f", without {listed(self.too_slow)}" if self.too_slow else ""
        return (
            f"{self.quick_replications} of {self.replications} replications of {self.quick_horizon:,} of "
            f"{self.horizon:,} rounds{without}"
        )


def synthetic() -> Problem:
    """Return the world of the paper's synthetic experiment: N = 3, M = 20, K = 4."""
    return make_problem("synthetic", n_user_types=3, n_items=20, n_positions=4, seed=0)


def rare_clicks() -> Problem:
    """Return the synthetic world with a twentieth of the clicks."""
    world = synthetic()
    return Problem(
        world.arrival_rates, world.position_preferences, LOW * world.item_means, name="rare-clicks"
    )


def many_items() -> Problem:
    """Return a world of one user type and 200 items, clicked in about 1% of looks, the best in some 5%."""
    rng = np.random.default_rng(0)
    means = np.minimum(0.01 * np.exp(0.6 * rng.standard_normal((1, 200))), 0.2)
    return Problem([1.0], rng.dirichlet(np.full(4, 2.0), 1), means, name="many-items")


def from_the_top(clicks: float = 1.0) -> Problem:
    """Return the synthetic world with positions that are looked at the less the further down they are.

    Parameters
    ----------
    clicks
        What click rates are multiplied with.
    """
    world = synthetic()
    looks = np.array([1.0, 0.7, 0.5, 0.35])
    return Problem(
        world.arrival_rates,
        np.tile(looks / looks.sum(), (world.n_user_types, 1)),
        clicks * world.item_means,
        name="from-the-top",
    )


def _conflict() -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=20, n_positions=4, seed=1)


def _changing(changes: str) -> Callable[[int], Timeline]:
    return lambda horizon: make_timeline(synthetic(), changes, horizon, seed=1)


_OF_TABLE_1 = "Two kinds of users, five ads and two positions, of which the second is looked at more"

ALL_SUITES = (
    Suite(
        name="table1",
        title="Table 1, personalized",
        why=f"The world that the paper measures in the log of a search engine. {_OF_TABLE_1}.",
        make=lambda _: kdd2012(),
    ),
    Suite(
        name="table1-equal",
        title="Table 1, equal, utilitarian",
        why=f"One ranking for everybody, for the most clicks in all. {_OF_TABLE_1}.",
        make=lambda _: kdd2012(),
        treatment="equal",
    ),
    Suite(
        name="table1-nash",
        title="Table 1, equal, Nash",
        why="One ranking for everybody that is fair to both kinds of users, which policies that count clicks "
        f"do not seek. {_OF_TABLE_1}.",
        make=lambda _: kdd2012(),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="synthetic",
        title="The paper's synthetic world",
        why="Three kinds of users, 20 items and four positions, all drawn at random: each kind looks at "
        "positions in an order of its own. Users click or not.",
        make=lambda _: synthetic(),
    ),
    Suite(
        name="graded",
        title="The synthetic world with graded rewards",
        why="The same world as the paper's own experiment has it: a look earns a Beta reward. So it shows "
        "where users look, and most policies of other papers are not made for that.",
        make=lambda _: synthetic(),
        rewards=BetaRewards(),
    ),
    Suite(
        name="low-clicks",
        title="Low click rates",
        why="The synthetic world with a twentieth of the clicks, as in advertising. A policy that waits for "
        "a click on everything everywhere waits for ever.",
        make=lambda _: rare_clicks(),
    ),
    Suite(
        name="many-items",
        title="Many items",
        why="200 items in four positions, clicked in about 1% of looks, and one kind of user. What cannot be "
        "told from a few clicks must not cost many rounds.",
        make=lambda _: many_items(),
        replications=6,
        quick_horizon=5_000,
        quick_replications=2,
        too_slow=("pmed",),
    ),
    Suite(
        name="conflict",
        title="Conflicting types",
        why="Every item is the favourite of one of three kinds of users and of little interest to the "
        "others. Pooling what they click hides what each of them likes.",
        make=lambda _: _conflict(),
    ),
    Suite(
        name="conflict-nash",
        title="Conflicting types, equal, Nash",
        why="One ranking for everybody where every item pleases one of three kinds of users only. The "
        "fairest ranking differs from the one of most clicks.",
        make=lambda _: _conflict(),
        treatment="equal",
        utility="nash",
    ),
    Suite(
        name="position-based",
        title="The classic position-based model",
        why="Users look at each position apart from the others, the first always and those below less and "
        "less, and may click several items. Policies that take this order for granted are at home here.",
        make=lambda _: from_the_top(),
        click_model=PositionBased(),
    ),
    Suite(
        name="cascade",
        title="The cascade model",
        why="Users read from the top and leave at the first click; click rates are 0.3 times the synthetic "
        "world's. What stands below a click was not seen, which policies made for single looks do not know.",
        make=lambda _: from_the_top(0.3),
        click_model=CASCADE,
    ),
    Suite(
        name="item-jumps",
        title="Drift: tastes that jump",
        why="The synthetic world, whose items exchange their click rates at three moments. Every policy "
        "enters twice, once with all of the past and once with a window of a tenth of the rounds.",
        make=_changing("item-jumps:3"),
        forgetting=True,
    ),
    Suite(
        name="item-drift",
        title="Drift: tastes that shift",
        why="The synthetic world, whose items slowly turn into others and back. Every policy enters twice, "
        "once with all of the past and once with a window of a tenth of the rounds.",
        make=_changing("item-drift:1"),
        forgetting=True,
    ),
    Suite(
        name="turnover",
        title="Drift: items that come and go",
        why="The synthetic world, in which the two oldest items are replaced ten times. Every policy enters "
        "twice, once with all of the past and once with a window of a tenth of the rounds.",
        make=_changing("turnover:10"),
        forgetting=True,
    ),
)

SUITES = {suite.name: suite for suite in ALL_SUITES}
