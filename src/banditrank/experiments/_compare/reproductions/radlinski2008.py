"""Radlinski, Kleinberg and Joachims (2008), "Learning diverse rankings with multi-armed bandits"."""

import math

import numpy as np

from banditrank.experiments._compare.reproductions.regret_reproduction import (
    PolicyRun,
    RegretReproduction,
    RunResults,
)
from banditrank.experiments._curves import at_round
from banditrank.experiments._study import Check
from banditrank.model._click_models import CASCADE, compile_problem
from banditrank.model._problem import Problem
from banditrank.policies.baselines._ranked_bandits import RankBanditName, RankedBandits
from banditrank.solvers._optimum import best_values
from banditrank.utilities._utility import UTILITARIAN

RELEVANT = ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11))  # items relevant to each user type
RELEVANT_MEAN, OTHER_MEAN = 0.8, 0.02
MIN_SHARE = 1 - 1 / math.e


def diverse_problem() -> Problem:
    """Return a problem of four user types with different relevant items, twelve items and three positions."""
    means = np.full((len(RELEVANT), 12), OTHER_MEAN)
    for user_type, items in enumerate(RELEVANT):
        means[user_type, list(items)] = RELEVANT_MEAN
    preferences = np.tile(np.array([3.0, 2.0, 1.0]) / 6, (len(RELEVANT), 1))
    return Problem([0.4, 0.25, 0.2, 0.15], preferences, means, name="diverse")


PROBLEM = diverse_problem()


def best_value() -> float:
    """Return the click rate of the best ranking for all users."""
    [value] = best_values(PROBLEM, equal=True, utility=UTILITARIAN, click_model=CASCADE, rewards=None)
    return float(value)


def popularity_value() -> float:
    """Return the click rate of the most popular items, which appeal to the same users."""
    popularity = PROBLEM.arrival_rates @ PROBLEM.item_means
    ranking = np.argsort(-popularity, kind="stable")[: PROBLEM.n_positions].astype(np.uintp)
    tables = compile_problem(PROBLEM, click_model=CASCADE)
    values = [CASCADE.value(tables, user_type, ranking) for user_type in range(PROBLEM.n_user_types)]
    return float(PROBLEM.arrival_rates @ np.array(values))


def _ranked(inner: RankBanditName, label: str) -> PolicyRun:
    return PolicyRun(
        label=label,
        policy=lambda horizon: RankedBandits(
            bandit=inner, horizon=horizon if inner == "exp3" else None, treatment="equal"
        ),
        problem=PROBLEM,
        click_model=CASCADE,
    )


def _checks(results: RunResults) -> list[Check]:
    best, popular = best_value(), popularity_value()
    late_rounds = results.horizon - results.horizon // 10
    late_regret = at_round(results.frames["ucb1"], results.horizon) - at_round(
        results.frames["ucb1"], results.horizon // 10
    )
    click_rate = best - late_regret / late_rounds
    return [
        Check(
            "After the first tenth of rounds the click rate of every replication is at least 1 − 1/e times "
            "that of the best ranking.",
            bool((click_rate >= MIN_SHARE * best).all()),
            f"at least {click_rate.min() / best:.1%} of the best, which has {best:.3f} clicks per round; "
            f"1 − 1/e is {MIN_SHARE:.1%}",
        ),
        Check(
            "Its click rate is higher than that of the most popular items, in every replication.",
            bool((click_rate > popular).all()),
            f"at least {click_rate.min():.3f} clicks per round against {popular:.3f}",
        ),
        results.less("ucb1", "exp3", "With UCB1 in each rank it has less regret than with EXP3"),
    ]


RANKED_BANDITS = RegretReproduction(
    policy="ranked-bandits",
    title="Ranked bandits, for diverse users",
    claim="A bandit in each rank learns a diverse ranking whose click rate is at least 1 − 1/e times that of "
    "the best one, which popularity alone does not achieve. With UCB1 it learns faster than with EXP3, for "
    "which this is proved (Radlinski, Kleinberg and Joachims, ICML 2008, the figures of its experiments).",
    setting="Four user types with different relevant items among twelve see three items and click the first "
    "one they like: a smaller problem than the paper's, of the same kind.",
    runs={"ucb1": _ranked("ucb1", "with UCB1"), "exp3": _ranked("exp3", "with EXP3")},
    checks=_checks,
)
