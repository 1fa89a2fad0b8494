"""Radlinski, Kleinberg and Joachims (2008), "Learning diverse rankings with multi-armed bandits"."""

import math

import numpy as np

from banditrank.experiments.compare.reproductions.trial import Results, Run, Trial
from banditrank.experiments.curves import at_round
from banditrank.experiments.study import Check
from banditrank.model.click_models import CASCADE, compile_problem
from banditrank.model.problem import Problem
from banditrank.policies.baselines.ranked_bandits import RankBanditName, RankedBandits
from banditrank.solvers.optimum import best_values
from banditrank.utilities.utility import UTILITARIAN

RELEVANT = ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11))  # items that each kind of user is looking for
CLICKED, BY_CHANCE = 0.8, 0.02
SHARE = 1 - 1 / math.e


def world() -> Problem:
    """Return four kinds of users who look for different things, twelve items, three positions."""
    means = np.full((len(RELEVANT), 12), BY_CHANCE)
    for user_type, items in enumerate(RELEVANT):
        means[user_type, list(items)] = CLICKED
    looks = np.tile(np.array([3.0, 2.0, 1.0]) / 6, (len(RELEVANT), 1))
    return Problem([0.4, 0.25, 0.2, 0.15], looks, means, name="diverse")


WORLD = world()


def best_value() -> float:
    """Return how often the best ranking for all is clicked."""
    [value] = best_values(WORLD, equal=True, utility=UTILITARIAN, click_model=CASCADE, rewards=None)
    return float(value)


def most_popular() -> float:
    """Return how often the most popular items are clicked: they please the same users."""
    popularity = WORLD.arrival_rates @ WORLD.item_means
    ranking = np.argsort(-popularity, kind="stable")[: WORLD.n_positions].astype(np.uintp)
    laid_out = compile_problem(WORLD, click_model=CASCADE)
    values = [CASCADE.value(laid_out, user_type, ranking) for user_type in range(WORLD.n_user_types)]
    return float(WORLD.arrival_rates @ np.array(values))


def _ranked(bandit: RankBanditName, label: str) -> Run:
    return Run(
        label=label,
        policy=lambda horizon: RankedBandits(
            bandit=bandit, horizon=horizon if bandit == "exp3" else None, treatment="equal"
        ),
        problem=WORLD,
        click_model=CASCADE,
    )


def _checks(results: Results) -> list[Check]:
    best, popular = best_value(), most_popular()
    late = results.horizon - results.horizon // 10
    lost = at_round(results.frames["ucb1"], results.horizon) - at_round(
        results.frames["ucb1"], results.horizon // 10
    )
    earned = best - lost / late
    return [
        Check(
            "After the first tenth of rounds every replication is clicked at least 1 − 1/e times as often as "
            "the best ranking.",
            bool((earned >= SHARE * best).all()),
            f"{earned.min() / best:.1%} of the best or more, which is clicked {best:.3f} times a round; "
            f"1 − 1/e is {SHARE:.1%}",
        ),
        Check(
            "It is clicked more often than a ranking of the most popular items, in every replication.",
            bool((earned > popular).all()),
            f"{earned.min():.3f} times a round or more against {popular:.3f}",
        ),
        results.less("ucb1", "exp3", "With UCB1 in each rank it has less regret than with EXP3"),
    ]


RANKED_BANDITS = Trial(
    policy="ranked-bandits",
    title="Ranked bandits, for users who want different things",
    claim="A bandit in each rank learns a diverse ranking that is clicked at least 1 − 1/e times as often as "
    "the best one, which popularity alone does not give. With UCB1 it learns faster than with EXP3, for "
    "which this is proved (Radlinski, Kleinberg and Joachims, ICML 2008, the figures of its experiments).",
    setting="Four kinds of users look for different items among twelve, see three and click the first that "
    "they like: a smaller world than the paper's, made in the same spirit.",
    runs={"ucb1": _ranked("ucb1", "with UCB1"), "exp3": _ranked("exp3", "with EXP3")},
    checks=_checks,
)
