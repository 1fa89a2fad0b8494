"""The probability that a ranking is the best one for all user types, and its loss, from posterior samples."""

import time
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._alternatives import enumerate_rankings
from banditrank.dashboard._posterior_samples import MAX_ELEMENTS, MIN_SAMPLES, Interval, PosteriorSamples
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.solvers._instance import as_instance, total_value
from banditrank.solvers._solve import solve
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]
Rankings = NDArray[np.intp]

_SOLVER_TIMEOUT_SECONDS = 0.05  # for all samples together
_TARGET_GAP = 1e-4
_RELATIVE_TOLERANCE = 1e-9
_BISECTIONS = 50  # to the precision of a float


@dataclass(frozen=True, slots=True, eq=False)
class SampledOptimum:
    """The optimum for all user types in each posterior sample.

    Attributes
    ----------
    is_optimal
        Whether the given ranking is optimal, shape (S,).
    values
        Values of the optimal ranking to each user type, shape (S, N).
    losses
        Loss of the given ranking against the optimal one in clicks per visit, as the difference of their
        `equivalent_values`, shape (S,).
    """

    is_optimal: NDArray[np.bool_]
    values: Floats
    losses: Floats


def wilson_interval(successes: NDArray[np.bool_], level: float) -> Interval:
    """Return the share of successes, and Wilson's score interval of their probability.

    Examples
    --------
    >>> round(wilson_interval(np.ones(400, dtype=bool), 0.95).low, 4)
    0.9905
    """
    n, share = successes.size, float(successes.mean())
    z_squared = NormalDist().inv_cdf((1 + level) / 2) ** 2
    center = share + z_squared / (2 * n)
    margin = sqrt(z_squared * (share * (1 - share) / n + z_squared / (4 * n**2)))
    low, high = ((center + end) / (1 + z_squared / n) for end in (-margin, margin))
    return Interval(share, max(low, 0.0), min(high, 1.0))


def find_sampled_optimum(
    samples: PosteriorSamples, ranking: Rankings, utility: Utility
) -> SampledOptimum | None:
    """Return the optimum of each sample, and whether a ranking attains it; None if that takes too long.

    Parameters
    ----------
    samples
        Posterior samples of all user types. Fewer are used where memory or time is short, but at least
        `MIN_SAMPLES`.
    ranking
        The ranking, shape (K,).
    utility
        The utility that rankings are compared by.
    """
    n_user_types, n_items = samples.arrival_rates.shape[1], samples.n_items
    if n_user_types * n_items * MIN_SAMPLES > MAX_ELEMENTS:
        return None
    rankings = enumerate_rankings(n_items, ranking.size)
    n_samples = samples.n_samples
    if rankings is not None:
        n_samples = min(n_samples, MAX_ELEMENTS // (rankings.size * n_user_types))
        if n_samples < MIN_SAMPLES:
            return None
    by_user_type = [samples.of_user_type(i) for i in range(n_user_types)]
    preferences = np.stack([one.position_preferences[:n_samples] for one in by_user_type], axis=1)
    means = np.stack([one.item_means[:n_samples] for one in by_user_type], axis=1)
    if rankings is None:
        return _solve_samples(samples.arrival_rates, preferences, means, ranking, utility)
    return _enumerate_samples(
        samples.arrival_rates[:n_samples], preferences, means, rankings, ranking, utility
    )


def _enumerate_samples(
    arrival_rates: Floats,  # (S, N)
    preferences: Floats,  # (S, N, K)
    means: Floats,  # (S, N, M)
    rankings: Rankings,  # (R, K)
    ranking: Rankings,
    utility: Utility,
) -> SampledOptimum:
    values = np.einsum("sik,sirk->sri", preferences, means[:, :, rankings])  # (S, R, N)
    weights = np.repeat(arrival_rates, len(rankings), axis=0)
    totals = utility.collectives(weights, values.reshape(-1, values.shape[2])).reshape(len(values), -1)
    actual = totals[:, (rankings == ranking).all(axis=1)]  # (S, 1)
    each, best = np.arange(len(values)), totals.argmax(axis=1)
    own_values = np.einsum("sik,sik->si", preferences, means[:, :, ranking])
    return _sampled_optimum(
        utility, arrival_rates, own_values, values[each, best], _attains(actual[:, 0], totals[each, best])
    )


def _solve_samples(
    arrival_rates: Floats, preferences: Floats, means: Floats, ranking: Rankings, utility: Utility
) -> SampledOptimum | None:
    """Solve sample by sample, until one is not solved in time."""
    deadline = time.monotonic() + _SOLVER_TIMEOUT_SECONDS
    is_optimal, values, own_values = [], [], []
    for weights, rho, mu in zip(arrival_rates, preferences, means, strict=True):
        problem = SampledProblem(weights, rho, mu)
        actual = total_value(as_instance(problem), utility.compiled(), ranking)
        time_limit = max(deadline - time.monotonic(), 0.0)
        solution = solve(problem, utility, time_limit=time_limit, target_gap=_TARGET_GAP, warm_start=ranking)
        if not solution.is_certified or time.monotonic() > deadline:
            break
        is_optimal.append(bool(_attains(np.float64(actual), np.float64(solution.value))))
        values.append(solution.user_type_values)
        own_values.append(np.einsum("ik,ik->i", rho, mu[:, ranking]))
    if len(is_optimal) < MIN_SAMPLES:
        return None
    return _sampled_optimum(
        utility,
        arrival_rates[: len(is_optimal)],
        np.array(own_values),
        np.array(values),
        np.array(is_optimal),
    )


def _sampled_optimum(
    utility: Utility,
    arrival_rates: Floats,  # (S, N)
    own_values: Floats,  # (S, N)
    values: Floats,  # (S, N)
    is_optimal: NDArray[np.bool_],  # (S,)
) -> SampledOptimum:
    own, optimal = (equivalent_values(utility, arrival_rates, one) for one in (own_values, values))
    return SampledOptimum(is_optimal, values, np.where(is_optimal, 0.0, np.maximum(optimal - own, 0.0)))


def equivalent_values(utility: Utility, weights: Floats, values: Floats) -> Floats:
    """Return the value that has the same collective utility if all user types have it, shape (S,).

    It is in clicks per visit for every utility: the mean of the values for the utilitarian one, their
    geometric mean for Nash, and the smallest for maximin.

    Parameters
    ----------
    utility
        The utility.
    weights, values
        Arrival rates, and the value of a ranking to each user type, shape (S, N).

    References
    ----------
    A. B. Atkinson, "On the measurement of inequality", Journal of Economic Theory 2, 1970: the equally
    distributed equivalent.

    Examples
    --------
    >>> from banditrank.utilities._utility import NASH
    >>> equivalent_values(NASH, np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]])).round(6)
    array([0.4])
    """
    totals = utility.collectives(weights, values)
    low, high = values.min(axis=1), values.max(axis=1)
    one_type = np.ones((len(values), 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_below = utility.collectives(one_type, middle[:, None]) < totals
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray(high)


def _attains(actual: Floats | np.float64, optimal: Floats | np.float64) -> NDArray[np.bool_]:
    """Return whether values equal the optimum but for rounding; both may be infinite."""
    return np.asarray((actual == optimal) | (actual >= optimal - _RELATIVE_TOLERANCE * np.abs(optimal)))
