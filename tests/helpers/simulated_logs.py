"""Simulated click logs: a logging policy shows rankings, and users click by a click model."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank import Problem
from banditrank.counts._click_cube import ClickCube

Logging = Literal["uniform", "explored", "plackett-luce"]
LogClickModel = Literal["single-look", "position-based", "cascade", "dependent-click", "user-browsing"]
Activity = Literal["two-levels", "gamma"]

EXPLORED_SHARE = 0.2  # of the visits under `explored` that are shown a random ranking
CONTINUATION = 0.6  # probability of reading on after a click, under `dependent-click`


class SimulatedVisits(NamedTuple):
    """Visits of a simulated log."""

    user_type: NDArray[np.int64]  # (n,)
    items: NDArray[np.int64]  # (n, K)
    clicks: NDArray[np.bool_]  # (n, K)
    propensities: NDArray[np.float64] | None  # (n, K), None for Plackett–Luce

    def cube(self, *, has_propensities: bool = False, users: ArrayLike | None = None) -> ClickCube:
        """Return the cube of the visits, each by a user of its own by default."""
        propensities = self.propensities if has_propensities else None
        return ClickCube.from_visits(
            self.user_type,
            self.items,
            self.clicks,
            item_names=[f"item-{j + 1}" for j in range(int(self.items.max()) + 1)],
            propensities=propensities,
            users=users,
        )


LONG_TAIL_EXAMINATION = np.array([1.0, 0.6, 0.4, 0.3, 0.2])


def long_tailed_visits(
    seed: int,
    *,
    n_tail: int = 3000,
    n_visits: int = 4000,
    is_confounded: bool = False,
    n_user_types: int = 1,
    examination: ArrayLike = LONG_TAIL_EXAMINATION,
) -> tuple[SimulatedVisits, NDArray[np.float64]]:
    """Return visits under the position-based model and the means of the items.

    The first ``n_tail`` items have two displays each, 30 more items the other ones, and user types do not
    matter. A confounded policy shows items by appeal and noise, so that the position tells of the item.
    """
    rng, n_positions = np.random.default_rng(seed), 5
    means = np.concatenate([rng.beta(1, 4, n_tail), rng.uniform(0.1, 0.5, 30)])
    weights = rng.gumbel(size=(n_visits, 30)) - np.log(np.arange(1, 31))
    items = np.argsort(-weights, axis=1)[:, :n_positions] + n_tail
    places = rng.permutation(items.size)[: 2 * n_tail]
    items.ravel()[places] = rng.permutation(np.repeat(np.arange(n_tail), 2))
    keys = -(means[items] + rng.normal(0, 0.1, items.shape)) if is_confounded else rng.random(items.shape)
    items = np.take_along_axis(items, np.argsort(keys, axis=1), axis=1)
    items = items[(np.diff(np.sort(items, axis=1), axis=1) > 0).all(axis=1)]  # no item twice
    clicks = rng.random(items.shape) < means[items] * np.asarray(examination)
    return SimulatedVisits(rng.integers(0, n_user_types, len(items)), items, clicks, None), means


def make_log_problem(
    seed: int = 0,
    *,
    n_user_types: int = 2,
    n_items: int = 10,
    n_positions: int = 5,
    means: tuple[float, float] = (0.1, 0.5),
) -> Problem:
    """Return a problem whose positions lose attention from the top, differently for each user type."""
    rng = np.random.default_rng(seed)
    decay = rng.uniform(0.5, 1.2, (n_user_types, 1))
    preferences = (1.0 + np.arange(n_positions)) ** -decay
    return Problem(
        rng.dirichlet(np.full(n_user_types, 20.0)),
        preferences / preferences.sum(axis=1, keepdims=True),
        rng.uniform(*means, (n_user_types, n_items)),
    )


def draw_activity(kind: Activity, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the activity of n visits or users, with mean 1; variance 0.4 of two levels, 0.5 of a gamma."""
    if kind == "two-levels":
        return rng.choice([0.5, 1.8], n, p=[8 / 13, 5 / 13])
    return rng.gamma(2.0, 0.5, n)


def browsing_examination(n_positions: int, decay: float = 0.7) -> NDArray[np.float64]:
    """Return γ[above, k], shape (K, K): examination declines with the distance from the last click above."""
    above, positions = np.arange(n_positions)[:, None], np.arange(n_positions)
    distance = positions + 1 - above
    return np.where(distance >= 1, np.maximum(distance, 1).astype(float) ** -decay, 0.0)


def simulate_visits(
    problem: Problem,
    logging: Logging,
    n_visits: int,
    click_model: LogClickModel,
    rng: np.random.Generator,
    *,
    continuation: ArrayLike = CONTINUATION,
    examination: ArrayLike | None = None,
    activity: ArrayLike = 1.0,
) -> SimulatedVisits:
    """Return simulated visits.

    Parameters
    ----------
    problem
        Arrival rates, position preferences and item means. Under ``position-based``, κ is the preferences
        over the largest one of the type. Scanning models read from the top.
    logging
        ``uniform``: random rankings. ``explored``: each type's noisy best ranking, replaced by a random one
        in a fifth of the visits. ``plackett-luce``: items drawn one after the other by noisy appeal.
    n_visits
        Number of visits.
    click_model
        Name of the click model.
    rng
        Source of randomness.
    continuation
        Probability of reading on after a click at each position, a number or shape (K,), under
        ``dependent-click``.
    examination
        γ[above, k] under ``user-browsing``, shape (K, K); `browsing_examination` by default.
    activity
        Factor of the click probabilities of each visit, a number or shape (n,).
    """
    user_type = rng.choice(problem.n_user_types, n_visits, p=problem.arrival_rates).astype(np.int64)
    items, propensities = _rankings(problem, logging, user_type, rng)
    appeal = problem.item_means[user_type[:, None], items]  # (n, K)
    appeal = np.minimum(appeal * np.broadcast_to(activity, n_visits)[:, None], 1.0)
    clicks = _clicks(problem, click_model, user_type, appeal, rng, continuation, examination)
    return SimulatedVisits(user_type, items, clicks, propensities)


def _rankings(
    problem: Problem, logging: Logging, user_type: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    n, n_items, n_positions = user_type.size, problem.n_items, problem.n_positions
    noisy = problem.item_means * np.exp(rng.normal(0.0, 0.3, problem.item_means.shape))
    keys = rng.random((n, n_items))
    if logging == "plackett-luce":
        keys = -np.log(-np.log(keys)) + np.log(noisy)[user_type]
    items = np.argsort(-keys, axis=1)[:, :n_positions].astype(np.int64)
    if logging == "plackett-luce":
        return items, None
    share = 1.0
    is_best = np.zeros(items.shape, dtype=np.bool_)
    if logging == "explored":
        share = EXPLORED_SHARE
        best = np.argsort(-noisy, axis=1)[:, :n_positions]  # (N, K)
        items = np.where((rng.random(n) < share)[:, None], items, best[user_type])
        is_best = items == best[user_type]
    return items, share / n_items + (1 - share) * is_best


def _clicks(
    problem: Problem,
    click_model: LogClickModel,
    user_type: NDArray[np.int64],
    appeal: NDArray[np.float64],
    rng: np.random.Generator,
    continuation: ArrayLike,
    examination: ArrayLike | None,
) -> NDArray[np.bool_]:
    n, n_positions = appeal.shape
    attracts = rng.random((n, n_positions)) < appeal
    preferences = problem.position_preferences[user_type]  # (n, K)
    if click_model == "single-look":
        look = (rng.random((n, 1)) > np.cumsum(preferences, axis=1)[:, :-1]).sum(axis=1)
        return attracts & (look[:, None] == np.arange(n_positions))
    uniform = rng.random((n, n_positions))
    if click_model == "position-based":
        return attracts & (uniform < preferences / preferences.max(axis=1, keepdims=True))
    clicks = np.zeros((n, n_positions), dtype=np.bool_)
    if click_model == "user-browsing":
        gamma = np.asarray(browsing_examination(n_positions) if examination is None else examination)
        above = np.zeros(n, dtype=np.int64)
        for k in range(n_positions):
            clicks[:, k] = attracts[:, k] & (uniform[:, k] < gamma[above, k])
            above[clicks[:, k]] = k + 1
        return clicks
    going_on = np.broadcast_to(0.0 if click_model == "cascade" else continuation, n_positions)
    is_reading = np.ones(n, dtype=np.bool_)
    for k in range(n_positions):
        clicks[:, k] = attracts[:, k] & is_reading
        is_reading &= ~clicks[:, k] | (uniform[:, k] < going_on[k])
    return clicks
