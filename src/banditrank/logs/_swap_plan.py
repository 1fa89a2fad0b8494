"""Experiment plan of a log: swaps of items after which the worth of positions would be known.

The information about the logarithms of position worth, with the appeal of items eliminated, is the Laplacian
of a graph: each item connects the positions at which it is shown. A swap of two items adds edges between
their positions, and what the log knows already stays.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._text import shorten

Floats = NDArray[np.float64]

MIN_FACTOR = 1.1
"""Variance, relative to that of the target, above which a position is not known well enough."""

_LEVEL = 0.95
_MIN_VISITS = 100
_UNCONNECTED = 1e-9  # information about a position that no item connects, relative to the largest
_N_CORRECTIONS = 3
_MAX_VISITS = 10**12


@dataclass(frozen=True, slots=True)
class SwapProposal:
    """Two items to swap in some visits, so that their positions can be compared.

    Attributes
    ----------
    user_type
        Name of the user type.
    first_item, second_item
        Names.
    first_position, second_position
        Where they are shown now, from 0.
    n_visits
        About how many visits have to see them swapped. At least as many visits have to see them where they
        are now; those of the log count.
    """

    user_type: str
    first_item: str
    first_position: int
    second_item: str
    second_position: int
    n_visits: int

    def __str__(self) -> str:
        return (
            f"for user type {shorten(self.user_type)}, swap {shorten(self.first_item)} (position "
            f"{self.first_position + 1}) and {shorten(self.second_item)} (position "
            f"{self.second_position + 1}) in about {self.n_visits:,} visits"
        )


class _Swap(NamedTuple):
    """Items by number, and the odds of a click on each where it is shown now and where it is swapped to."""

    first: int
    second: int
    reference: int
    position: int
    first_odds: tuple[float, float]
    second_odds: tuple[float, float]


class FittedType(NamedTuple):
    """Counts of a user type, and the position-based model that is fitted to them.

    Attributes
    ----------
    user_type, items
        Names.
    displays, clicks
        Of the user type, shape (M, K).
    worth, appeal
        Fitted relative examination, shape (K,), and appeal, shape (M,); each component has its own scale.
    components
        Groups of positions that the log can compare, the one with most clicks first.
    """

    user_type: str
    items: tuple[str, ...]
    displays: Floats
    clicks: Floats
    worth: Floats
    appeal: Floats
    components: tuple[tuple[int, ...], ...]


def plan_swaps(fitted: FittedType, target: float) -> tuple[SwapProposal, ...]:
    """Return swaps after which the worth of each position is known to the target, relative to the best one.

    Swaps are planned one after the other, each for the position whose comparison settles that of most others,
    so that positions that are known well enough, or would be after the swaps before, need none. Positions
    that were never clicked, although clicked items were shown there, have none: only a bound is known.

    Parameters
    ----------
    fitted
        Counts and fitted model of a user type.
    target
        Relative precision.

    Examples
    --------
    Positions 2 and 3 can be compared already, so that one swap is enough:

    >>> displays = np.array([[900.0, 0.0, 0.0], [0.0, 9000.0, 9000.0], [0.0, 9000.0, 9000.0]])
    >>> worth, appeal = np.array([1.0, 1.0, 0.8]), np.array([0.5, 0.3, 0.3])
    >>> clicks = displays * np.outer(appeal, worth)
    >>> names, components = ("a", "b", "c"), ((1, 2), (0,))
    >>> fitted = FittedType("all", names, displays, clicks, worth, appeal, components)
    >>> for swap in plan_swaps(fitted, target=0.1):
    ...     print(swap)
    for user type all, swap b (position 2) and a (position 1) in about 580 visits
    """
    displays, clicks = fitted.displays, fitted.clicks
    shown = np.flatnonzero(displays.any(axis=0))
    if shown.size < 2 or not clicks.any():
        return ()
    click_rates = np.clip(np.outer(fitted.appeal, fitted.worth), 0.0, 1.0 - 0.5 / (displays + 1.0))
    weights = displays * click_rates / (1 - click_rates)
    main = fitted.components[0] if fitted.components and len(fitted.components[0]) > 1 else ()
    reference = int(main[int(fitted.worth[list(main)].argmax())] if main else clicks.sum(axis=0).argmax())
    component_of = np.full(displays.shape[1], -1)
    for number, group in enumerate(fitted.components):
        component_of[list(group)] = number
    target_variance = (math.log1p(target) / NormalDist().inv_cdf((1 + _LEVEL) / 2)) ** 2
    planned: list[SwapProposal] = []
    # Items that are clicked elsewhere were not clicked there: the log has an upper bound of the worth only.
    is_never_clicked = (component_of >= 0) & ~clicks.any(axis=0)
    excluded = {reference, *np.flatnonzero(is_never_clicked).tolist()}
    while True:
        resistances = _resistances(weights, shown)
        position = _next_position(resistances, shown, weights, reference, excluded, target_variance)
        if position is None:
            return tuple(planned)
        excluded.add(position)  # a swap that comes too short is not repeated
        is_joint = bool(component_of[position] == component_of[reference] >= 0)
        swap = _choose_items(displays, clicks, click_rates, reference, position, is_joint=is_joint)
        if swap is None:
            continue
        goal = _goal_variance(resistances, shown, reference, position, target_variance)
        row, column = np.searchsorted(shown, [reference, position])
        n_visits = _find_visits(weights, shown, swap, goal, 1 / float(resistances[row, column]))
        weights = _add_displays(weights, swap, n_visits)
        planned.append(
            SwapProposal(
                fitted.user_type,
                fitted.items[swap.first],
                reference,
                fitted.items[swap.second],
                position,
                _round_up(max(n_visits, _MIN_VISITS)),
            )
        )


def _resistances(weights: Floats, shown: NDArray[np.int64]) -> Floats:
    """Return the variances of the log-ratios of shown positions, shape (S, S): huge if not connected."""
    used = weights[:, shown]
    of_items = used.sum(axis=1, keepdims=True)
    shares = np.divide(used, of_items, out=np.zeros_like(used), where=of_items > 0)
    laplacian = np.diag(used.sum(axis=0)) - used.T @ shares
    ridge = _UNCONNECTED * max(float(used.sum(axis=0).max()), 1e-300)
    inverse = np.linalg.inv(laplacian + ridge * np.eye(shown.size))
    diagonal = np.diag(inverse)
    return np.asarray((diagonal[:, None] + diagonal - 2 * inverse).clip(0.0))


def _next_position(
    resistances: Floats,
    shown: NDArray[np.int64],
    weights: Floats,
    reference: int,
    excluded: set[int],
    target_variance: float,
) -> int | None:
    """Return the position to compare with the reference next; None if all are known well enough."""
    to_reference = resistances[np.searchsorted(shown, reference)]
    is_imprecise = (to_reference > MIN_FACTOR * target_variance) & ~np.isin(shown, list(excluded))
    if not is_imprecise.any():
        return None
    imprecise = np.flatnonzero(is_imprecise)
    settled = (resistances[np.ix_(imprecise, imprecise)] < target_variance / 2).sum(axis=1)
    order = np.lexsort((-weights[:, shown[imprecise]].sum(axis=0), -settled))
    return int(shown[imprecise[order[0]]])


def _goal_variance(
    resistances: Floats, shown: NDArray[np.int64], reference: int, position: int, target_variance: float
) -> float:
    """Return the variance to aim at, so that positions that are known relative to this one are known, too."""
    at = int(np.searchsorted(shown, position))
    to_reference = resistances[np.searchsorted(shown, reference)]
    near = (to_reference > MIN_FACTOR * target_variance) & (resistances[at] < target_variance / 2)
    return target_variance - float(resistances[at][near].max(initial=0.0))


def _choose_items(
    displays: Floats, clicks: Floats, click_rates: Floats, reference: int, position: int, *, is_joint: bool
) -> _Swap | None:
    """Return the swap of the most clicked items of both positions; None if clicks are not to be expected."""
    first = _most_clicked(displays, clicks, reference, None)
    second = _most_clicked(displays, clicks, position, first)
    if first is None or second is None:
        return None
    now = (float(click_rates[first, reference]), float(click_rates[second, position]))
    if is_joint:
        swapped = (float(click_rates[first, position]), float(click_rates[second, reference]))
    else:  # the positions have not been compared: the smaller rate of both
        least = min((rate for rate in now if rate > 0), default=0.0)
        swapped = (least, least if clicks[second].any() else 0.0)
    if max(swapped) <= 0:
        return None
    first_odds, second_odds = (
        (_odds(before), _odds(after)) for before, after in zip(now, swapped, strict=True)
    )
    return _Swap(first, second, reference, position, first_odds, second_odds)


def _odds(rate: float) -> float:
    rate = min(rate, 0.99)
    return rate / (1 - rate)


def _most_clicked(displays: Floats, clicks: Floats, position: int, other: int | None) -> int | None:
    """Return the item with the most clicks at a position, or the most displays if none was clicked there."""
    score = clicks[:, position] + displays[:, position] * 1e-9
    if other is not None:
        score[other] = 0.0
    return int(score.argmax()) if score.max() > 0 else None


def _add_displays(weights: Floats, swap: _Swap, n_visits: float) -> Floats:
    """Return the weights after a number of visits with the swap."""
    added = weights.copy()
    for item, home, away, (now, swapped) in (
        (swap.first, swap.reference, swap.position, swap.first_odds),
        (swap.second, swap.position, swap.reference, swap.second_odds),
    ):
        added[item, home] = max(added[item, home], n_visits * now)
        added[item, away] += n_visits * swapped
    return np.asarray(added)


def _find_visits(weights: Floats, shown: NDArray[np.int64], swap: _Swap, goal: float, known: float) -> float:
    """Return about how many visits a swap takes until the variance of its positions is the goal.

    Each item connects the two positions in series, and the items and the log connect them in parallel. An
    item that is at other positions, too, connects them better, for which the number is corrected.
    """
    row, column = np.searchsorted(shown, [swap.reference, swap.position])
    needed = 1 / goal - known
    edges = [
        (weights[swap.first, swap.reference], weights[swap.first, swap.position], swap.first_odds),
        (weights[swap.second, swap.position], weights[swap.second, swap.reference], swap.second_odds),
    ]

    def gain(n_visits: float) -> float:
        return sum(
            _in_series(max(home, n_visits * now), away + n_visits * swapped) - _in_series(home, away)
            for home, away, (now, swapped) in edges
        )

    low, high = 0.0, 1.0
    while gain(high) < needed and high < _MAX_VISITS:
        low, high = high, 2 * high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gain(middle) >= needed else (middle, high)
    for _ in range(_N_CORRECTIONS):
        gained = 1 / float(_resistances(_add_displays(weights, swap, high), shown)[row, column]) - known
        if abs(gained / needed - 1) < 0.05:
            break
        high = min(high * needed / gained, _MAX_VISITS)
    return high


def _in_series(one: float, other: float) -> float:
    return one * other / (one + other) if one > 0 and other > 0 else 0.0


def _round_up(number: float) -> int:
    """Return a number with two significant digits, rounded up."""
    scale = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / scale) * scale
