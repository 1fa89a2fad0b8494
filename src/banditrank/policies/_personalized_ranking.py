"""Personalized ranking, option 1 of Algorithms 2 and 3: the best items to the best positions, in order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, inlined
from banditrank.counts._counts import Counts
from banditrank.estimators._item_means import exposure_of, exposures_of
from banditrank.estimators._position_preferences import estimate_preferences
from banditrank.policies._kernel import Kernel
from banditrank.policies._restriction import AVAILABLE, Restriction, place_best
from banditrank.policies._running_estimates import (
    AugmentedCounts,
    RunningEstimates,
    init_running_estimates,
    try_explore,
    try_explore_restricted,
    update_running_estimates,
)

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]  # unsigned, so that compiled code has no negative indices to handle

_MARGIN = 1.0 - 1e-9  # closer comparisons are left to a full scan, as rounding could decide them


class PersonalizedState(NamedTuple):
    """The leading items of each user type, and an upper bound on the indices of the others.

    The index of item j is (‖S_ij‖₁ + bonus) / N_ij. Between full scans only the leaders are examined. The
    index of another item, while it is not shown, can rise in two ways: the bonus grows, by at most bonus /
    bonus at the scan; and its exposure shrinks through ρ̂, by at most the smallest ρ̂_k / ρ̂_k at the scan.
    While the leaders stay above the best of these indices inflated by both factors, a scan would find the
    same leaders. Feedback on any other ranking forces a scan, whenever that ranking was shown.
    """

    estimates: RunningEstimates
    leaders: Indices  # (N, K) items by decreasing index
    positions: Indices  # (N, K) positions by decreasing ρ̂
    scan_inverses: Floats  # (N, K) 1 / ρ̂ at the last scan
    scan_bonuses: Floats  # (N,) the bonus at the last scan
    challengers: Floats  # (N,) the best other index at the last scan; infinite to force a scan
    challengers_per_bonus: Floats  # (N,) the same over the bonus at the last scan
    indices: Floats  # (M,) workspace


def init_personalized(
    counts: Counts, turn: NDArray[np.int64], augmented: AugmentedCounts | None = None
) -> PersonalizedState:
    """Return the state for counts."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    return PersonalizedState(
        init_running_estimates(counts, turn, augmented),
        np.zeros((n, k), dtype=np.uintp),
        np.tile(np.arange(k, dtype=np.uintp), (n, 1)),
        np.zeros((n, k)),
        np.zeros(n),
        np.full(n, np.inf),
        np.full(n, np.inf),
        np.zeros(m),
    )


@inlined
def _rank(
    state: PersonalizedState,
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    exploration, bonus = parameters[0], parameters[1]
    if not try_explore(state.estimates, t, exploration, rng, ranking):
        _follow_leaders(state, user_type, bonus, ranking)


@inlined
def _follow_leaders(state: PersonalizedState, user_type: int, bonus: float, ranking: Indices) -> None:
    i = user_type
    estimates = state.estimates
    preferences = estimates.evidence.preferences
    shrinkage = np.inf
    for k in range(ranking.size):
        shrinkage = min(shrinkage, preferences[i, k] * state.scan_inverses[i, k])
    challenger = state.challengers[i]
    if bonus > state.scan_bonuses[i]:
        challenger = state.challengers_per_bonus[i] * bonus
    ahead, in_order = True, True  # by `_MARGIN`
    last_earned, last_exposure = np.inf, 1.0
    for rank in range(ranking.size):  # indices are earned / exposure, compared without dividing
        item = state.leaders[i, rank]
        earned = estimates.reward_totals[i, item] + bonus
        exposure = exposure_of(estimates.displays, preferences, i, item, ranking.size)
        ahead &= earned * shrinkage * _MARGIN > challenger * exposure
        in_order &= earned * last_exposure < last_earned * exposure * _MARGIN
        last_earned, last_exposure = earned, exposure
    last = np.inf
    for rank in range(ranking.size):
        preference = preferences[i, state.positions[i, rank]]
        in_order &= preference < last * _MARGIN
        last = preference
    if not ahead or (not in_order and not _reorder(state, i, bonus)):
        _scan(state, i, bonus)
    for rank in range(ranking.size):
        ranking[state.positions[i, rank]] = state.leaders[i, rank]


@compiled
def _scan(state: PersonalizedState, user_type: int, bonus: float) -> None:
    """Find the leaders among all items; ties go to the lower index."""
    i = user_type
    estimates, indices = state.estimates, state.indices
    preferences = estimates.evidence.preferences
    estimate_preferences(
        estimates.displays, estimates.rewards, estimates.evidence, i
    )  # removes rounding errors
    exposures_of(estimates.displays, preferences, i, indices)
    for j in range(indices.size):
        indices[j] = (estimates.reward_totals[i, j] + bonus) / indices[j]
    for rank in range(preferences.shape[1]):
        best = 0
        for j in range(1, indices.size):
            if indices[j] > indices[best]:
                best = j
        state.leaders[i, rank] = best
        indices[best] = -1.0
    challenger = -1.0  # none if all items are leaders
    for j in range(indices.size):
        challenger = max(challenger, indices[j])
    state.challengers[i] = challenger
    state.challengers_per_bonus[i] = challenger / bonus  # infinite without a bonus: any growth forces a scan
    state.scan_bonuses[i] = bonus
    for k in range(preferences.shape[1]):
        state.scan_inverses[i, k] = 1.0 / preferences[i, k]
    _order_positions(state, i)


@compiled
def _reorder(state: PersonalizedState, user_type: int, bonus: float) -> bool:
    """Sort the leaders by decreasing index, and the positions; return whether the order is free of ties.

    Rounding would decide ties, and a full recomputation might decide otherwise.
    """
    i = user_type
    estimates, n_positions = state.estimates, state.leaders.shape[1]
    preferences = estimates.evidence.preferences
    for rank in range(n_positions):
        item = state.leaders[i, rank]
        exposure = exposure_of(estimates.displays, preferences, i, item, n_positions)
        index = (estimates.reward_totals[i, item] + bonus) / exposure
        place = rank
        while place > 0 and state.indices[place - 1] < index:
            state.indices[place] = state.indices[place - 1]
            state.leaders[i, place] = state.leaders[i, place - 1]
            place -= 1
        state.indices[place] = index
        state.leaders[i, place] = item
    _order_positions(state, i)
    clear = True
    for rank in range(1, n_positions):
        clear &= state.indices[rank] < state.indices[rank - 1] * _MARGIN
        before, after = state.positions[i, rank - 1], state.positions[i, rank]
        clear &= preferences[i, after] < preferences[i, before] * _MARGIN
    return clear


@compiled
def _order_positions(state: PersonalizedState, user_type: int) -> None:
    """Sort the positions by decreasing ρ̂; ties go to the lower index."""
    i = user_type
    preferences = state.estimates.evidence.preferences
    for rank in range(1, state.positions.shape[1]):
        position = state.positions[i, rank]
        preference = preferences[i, position]
        place = rank
        while place > 0:
            other = state.positions[i, place - 1]
            if preferences[i, other] > preference or (
                preferences[i, other] == preference and other < position
            ):
                break
            state.positions[i, place] = other
            place -= 1
        state.positions[i, place] = position


@inlined
def _observe(state: PersonalizedState, user_type: int, t: int, ranking: Indices, rewards: Floats) -> None:
    update_running_estimates(state.estimates, user_type, t, ranking, rewards)
    is_of_leaders = ranking.size == state.leaders.shape[1]  # not a short ranking
    for rank in range(ranking.size if is_of_leaders else 0):
        is_of_leaders &= ranking[state.positions[user_type, rank]] == state.leaders[user_type, rank]
    if not is_of_leaders:
        state.challengers[user_type] = np.inf
        state.challengers_per_bonus[user_type] = np.inf


@inlined
def _choose(
    state: PersonalizedState,
    restriction: Restriction,
    workspace: None,  # noqa: ARG001 - none
    user_type: int,
    t: int,
    parameters: Floats,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    i, estimates, values = user_type, state.estimates, restriction.values
    if try_explore_restricted(estimates, restriction, t, parameters[0], rng, ranking):
        return
    exposures_of(estimates.displays, estimates.evidence.preferences, i, values)
    for index in range(restriction.sizes[AVAILABLE]):
        j = restriction.items[index]
        values[j] = (estimates.reward_totals[i, j] + parameters[1]) / values[j]
    place_best(restriction, values, estimates.evidence.preferences[i], ranking)


PERSONALIZED_KERNEL = Kernel(_rank, _observe, _choose)
