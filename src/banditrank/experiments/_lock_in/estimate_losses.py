"""Why a run has locked in: the loss of the ranking that each estimator derives from its final counts.

If the true position preferences lead to the best ranking, the estimated ones are at fault; if Algorithm 1
without rarely shown items does, those items distorted its estimates; if no estimator does, the counts
themselves are misleading: a good item had few clicks by chance and was not shown again.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._counts import Counts
from banditrank.estimators._estimates import Estimates, arrival_rates, estimate
from banditrank.estimators._item_means import exposure, item_means
from banditrank.estimators._position_preferences import position_preferences
from banditrank.model._problem import Problem
from banditrank.model._values import best_personalized_rankings, best_personalized_values, user_type_values
from banditrank.solvers._solve import best_equal_ranking, equal_value

Floats = NDArray[np.float64]


def losses_by_estimator(problem: Problem, counts: Counts, *, equal: bool) -> dict[str, float]:
    """Return the share of the best value that is lost by acting on each estimate of the counts.

    ``estimated``
        The paper's estimates.
    ``known_positions``
        The paper's estimates with the true ρ.
    ``without_rare``
        The paper's estimates with Algorithm 1 on only the K most shown items of each type.
    ``likelihood``
        Maximum likelihood estimates, in which rarely shown items have little weight.
    """
    estimates = {
        "estimated": _estimates(counts, position_preferences(counts)),
        "known_positions": _estimates(counts, np.asarray(problem.position_preferences)),
        "without_rare": _estimates(counts, _preferences_of_most_shown(counts)),
        "likelihood": estimate(counts, method="likelihood"),
    }
    loss = _equal_loss if equal else _personalized_loss
    return {name: loss(problem, estimate) for name, estimate in estimates.items()}


def _estimates(counts: Counts, preferences: Floats) -> Estimates:
    exposures = exposure(counts, preferences)
    return Estimates(arrival_rates(counts), preferences, exposures, item_means(counts, exposures))


def _preferences_of_most_shown(counts: Counts) -> Floats:
    rows = []
    for i in range(counts.n_user_types):
        shown = np.argsort(-counts.displays[i].sum(axis=1), kind="stable")[: counts.n_positions]
        few = Counts.from_arrays(counts.displays[[i]][:, shown], counts.rewards[[i]][:, shown], [1.0])
        rows.append(position_preferences(few)[0])
    return np.array(rows)


def _equal_loss(problem: Problem, estimates: Estimates) -> float:
    best = equal_value(problem, best_equal_ranking(problem))
    return 1 - equal_value(problem, best_equal_ranking(estimates)) / best


def _personalized_loss(problem: Problem, estimates: Estimates) -> float:
    rankings = best_personalized_rankings(estimates)
    values = [user_type_values(problem, ranking)[i] for i, ranking in enumerate(rankings)]
    rates = problem.arrival_rates
    return float(1 - (rates @ values) / (rates @ best_personalized_values(problem)))
