"""Why a run has locked in: what it would lose by acting on what it believes, and on better beliefs.

The counts at the end of a run are read in several ways. If knowing where users look would have led to the
right ranking, the estimated position preferences are to blame; if leaving rarely shown items out of
Algorithm 1 would have, these have spoilt them; if nothing helps, the counts themselves are misleading: a good
item had bad luck and was never shown again.
"""

import numpy as np
from numpy.typing import NDArray

from banditrank.counts.counts import Counts
from banditrank.estimators.estimates import Estimates, arrival_rates, estimate
from banditrank.estimators.item_means import exposure, item_means
from banditrank.estimators.position_preferences import position_preferences
from banditrank.model.problem import Problem
from banditrank.model.values import (
    best_personalized_rankings,
    best_personalized_values,
    user_type_values,
)
from banditrank.solvers.solve import best_equal_ranking, equal_value

Floats = NDArray[np.float64]


def losses_of_beliefs(problem: Problem, counts: Counts, *, equal: bool) -> dict[str, float]:
    """Return which share of the best value is lost by acting on each reading of the counts.

    ``believed``
        The paper's estimates.
    ``known_positions``
        The same with the true ρ.
    ``without_rare``
        Algorithm 1 on the K most shown items of each type only.
    ``likelihood``
        The likelihood's estimates, in which a rarely shown item counts for little.
    """
    readings = {
        "believed": _estimates(counts, position_preferences(counts)),
        "known_positions": _estimates(counts, np.asarray(problem.position_preferences)),
        "without_rare": _estimates(counts, _preferences_of_most_shown(counts)),
        "likelihood": estimate(counts, method="likelihood"),
    }
    loss = _equal_loss if equal else _personalized_loss
    return {name: loss(problem, estimates) for name, estimates in readings.items()}


def _estimates(counts: Counts, preferences: Floats) -> Estimates:
    looks = exposure(counts, preferences)
    return Estimates(arrival_rates(counts), preferences, looks, item_means(counts, looks))


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
