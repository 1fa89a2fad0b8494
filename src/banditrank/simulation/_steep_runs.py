"""Steep runs: replications whose regret grows much faster at their end than it has to.

In the long run regret grows at least like C ln t, C being the Graves–Lai constant. A run is steep if its
regret grows per ln t by more than `STEEP_FACTOR` times C over the last half of the rounds. That finds linear
stretches that the regret at the horizon hides: a loss of r a round after 4.2 C / r rounds. Where there are
few rounds, policies that still explore by plan are steep, too.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from banditrank.errors import UnsolvableError
from banditrank.model._click_models import PositionBased, SingleLook
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards
from banditrank.simulation._graves_lai import graves_lai_constant

Floats = NDArray[np.float64]

STEEP_FACTOR = 3.0
"""A run is steep if its slope per ln t exceeds this many times the Graves–Lai constant."""

MIN_GAP = 0.005
"""Smaller differences of item means or position preferences are ties for the constant: ruling them out takes
more rounds than simulations have, and would dominate it."""

MAX_ITEMS = 20
"""Maximum number of items of a problem whose constant is computed: it takes seconds there, minutes beyond."""

MAX_USER_TYPES = 20
"""Maximum number of user types of such a problem."""

_HALF = (0.25, 0.75)  # of the rounds: where the checkpoint must lie that the last half starts from


def least_slope(
    problem: object, *, treatment: str, click_model: str, rewards: str, has_guarantees: bool = False
) -> float | None:
    """Return the least slope of regret per ln t in the long run, or None where it is unknown.

    It is the sum of the problem's Graves–Lai constants over user types, with differences below `MIN_GAP`
    taken for ties. It is computed once for each problem.

    Parameters
    ----------
    problem
        Problem of any kind.
    treatment, click_model, rewards
        Treatment, click model and rewards of the simulation, by name.
    has_guarantees
        Whether regret is against the best lotteries that keep guarantees.

    Returns
    -------
    float or None
        None under equal treatment and with guarantees, for problems that change or are contextual, graded
        rewards, other click models than ``single-look`` and ``position-based``, problems of more than
        `MAX_ITEMS` items or `MAX_USER_TYPES` user types, and those where all rankings are ties.
    """
    if (
        treatment != "personalized"
        or has_guarantees
        or not isinstance(problem, Problem)
        or rewards != str(BernoulliRewards())
        or click_model not in (SingleLook.name, PositionBased.name)
        or problem.n_items > MAX_ITEMS
        or problem.n_user_types > MAX_USER_TYPES
    ):
        return None
    return _least_slope(problem, click_model)


@lru_cache(maxsize=64)
def _least_slope(problem: Problem, click_model: str) -> float | None:
    try:
        slope = float(graves_lai_constant(problem, click_model=click_model, min_gap=MIN_GAP).sum())
    except UnsolvableError:
        return None
    return slope if slope > 0.0 else None


def steep_share(checkpoints: NDArray[np.int64], regret: Floats, slope: float | None) -> float | None:
    """Return the share of replications that are steep, or None where it is unknown.

    The last half of the rounds starts from the checkpoint that is nearest to half of the last one.

    Parameters
    ----------
    checkpoints
        Rounds in increasing order, shape (C,).
    regret
        Regret of the replications up to each checkpoint, shape (R, C).
    slope
        Least slope per ln t, as `least_slope` returns it.

    Returns
    -------
    float or None
        None if the slope is unknown, no replication is finished, or no checkpoint lies between a quarter and
        three quarters of the rounds.

    Examples
    --------
    >>> logarithmic, linear = np.log([500, 1000]), np.array([500, 1000]) / 100
    >>> steep_share(np.array([500, 1000]), np.array([logarithmic, linear]), 1.0)
    0.5
    """
    if slope is None or regret.shape[0] == 0:
        return None
    rounds = int(checkpoints[-1])
    middle = int(np.argmin(np.abs(checkpoints - rounds / 2)))
    if not _HALF[0] * rounds <= checkpoints[middle] <= _HALF[1] * rounds:
        return None
    gained = (regret[:, -1] - regret[:, middle]) / np.log(rounds / checkpoints[middle])
    return float(np.mean(gained > STEEP_FACTOR * slope))
