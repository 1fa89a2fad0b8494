"""Non-stationary problems: abrupt changes, drift and turnover of items."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._problem import Problem
from banditrank.model._timeline import Timeline

Floats = NDArray[np.float64]

DRIFT_STEPS = 200  # steps that approximate a continuous change


def item_jumps(problem: Problem, horizon: int, times: int, rng: np.random.Generator) -> Timeline:
    """Permute the items' means at evenly spaced rounds."""
    deals = [problem.item_means[:, rng.permutation(problem.n_items)] for _ in range(times)]
    return _timeline(problem, horizon, [replace(problem, item_means=means) for means in deals])


def position_jumps(problem: Problem, horizon: int, times: int, rng: np.random.Generator) -> Timeline:
    """Permute each type's position preferences at evenly spaced rounds."""
    deals = [rng.permuted(problem.position_preferences, axis=1) for _ in range(times)]
    return _timeline(problem, horizon, [replace(problem, position_preferences=looks) for looks in deals])


def item_drift(problem: Problem, horizon: int, times: int, rng: np.random.Generator) -> Timeline:
    """Move each item's means to those of another item and back, ``times`` times, along a sine."""
    other = problem.item_means[:, rng.permutation(problem.n_items)]
    blends = [_blend(problem.item_means, other, share) for share in _shares(times)]
    return _timeline(problem, horizon, [replace(problem, item_means=means) for means in blends])


def position_drift(problem: Problem, horizon: int, times: int, rng: np.random.Generator) -> Timeline:
    """Move each type's position preferences to a permutation and back, ``times`` times, along a sine."""
    other = rng.permuted(problem.position_preferences, axis=1)
    blends = [_blend(problem.position_preferences, other, share) for share in _shares(times)]
    return _timeline(problem, horizon, [replace(problem, position_preferences=looks) for looks in blends])


def turnover(problem: Problem, horizon: int, times: int, rng: np.random.Generator) -> Timeline:
    """Replace the oldest tenth of the items by new ones at evenly spaced rounds.

    A new item has the means of an item of the original problem, drawn at random.
    """
    count = max(1, problem.n_items // 10)
    names, means = list(problem.items), problem.item_means
    problems = []
    for time in range(times):
        fresh = rng.choice(problem.item_means, size=count, axis=1)
        names = [*names[count:], *(f"new-{time * count + number + 1}" for number in range(count))]
        means = np.hstack([means[:, count:], fresh])
        problems.append(replace(problem, item_means=means, items=tuple(names)))
    return _timeline(problem, horizon, problems)


CHANGES: dict[str, Callable[[Problem, int, int, np.random.Generator], Timeline]] = {
    "item-jumps": item_jumps,
    "position-jumps": position_jumps,
    "item-drift": item_drift,
    "position-drift": position_drift,
    "turnover": turnover,
}


def make_timeline(problem: Problem, changes: str, horizon: int, seed: int = 0) -> Timeline:
    """Return a timeline in which a problem changes over the horizon.

    Parameters
    ----------
    problem
        The problem in round 1.
    changes
        One of `CHANGES` and the number of changes: ``item-jumps:3``.
    horizon
        The number of rounds over which the changes are spread.
    seed
        Seed of the changes.

    Raises
    ------
    InvalidInputError
        If an argument is invalid; `UnknownNameError` for an unknown kind of change.

    Examples
    --------
    >>> from banditrank.model._catalog import kdd2012
    >>> make_timeline(kdd2012(), "item-jumps:2", 30_000).starts
    (1, 10001, 20001)
    """
    if not isinstance(problem, Problem):
        raise InvalidInputError("problem", "must be a stationary Problem", problem)
    if not isinstance(changes, str):
        raise InvalidInputError("changes", "must be a string such as item-jumps:3", changes)
    horizon = check_integer("horizon", horizon, 2, 10**12)
    name, _, times = changes.partition(":")
    if name not in CHANGES:
        raise UnknownNameError("changes", name, [f"{known}:TIMES" for known in CHANGES])
    if not times.isascii() or not times.isdigit():
        raise InvalidInputError("changes", f"must be {name}:TIMES with a whole number", changes)
    count = check_integer("changes' times", int(times), 1, min(horizon - 1, 10_000))
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    return CHANGES[name](problem, horizon, count, rng)


def _shares(times: int) -> Floats:
    """Return the weight of the other problem at each step: from 0 to 1 and back, ``times`` times."""
    return np.asarray(np.sin(np.pi * times * np.arange(1, DRIFT_STEPS) / DRIFT_STEPS) ** 2)


def _blend(before: Floats, after: Floats, share: float) -> Floats:
    return np.asarray((1 - share) * before + share * after)


def _timeline(problem: Problem, horizon: int, later: list[Problem]) -> Timeline:
    """Spread problems evenly over the horizon; if there are more problems than rounds, some are skipped."""
    starts = 1 + np.arange(len(later) + 1) * horizon // (len(later) + 1)
    first = np.unique(starts, return_index=True)[1]
    problems = [problem, *later]
    return Timeline([problems[number] for number in first], [int(starts[number]) for number in first])
