"""Option 1 of Algorithms 2 and 3: the best item, by mean plus bonus, to the position looked at most."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.compilation import compiled, inlined
from banditrank.estimators.item_means import exposure_of, exposures_of
from banditrank.estimators.position_preferences import estimate_preferences
from banditrank.policies.base import Kernel, Scratch
from banditrank.policies.learner import EXPLORATIONS, UNREWARDED, Learner, learn, start_learner
from banditrank.policies.round_robin import round_robin
from banditrank.statistics.counts import Counts

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]  # unsigned: the compiler need not ask whether an index counts from the end

_MARGIN = 1.0 - 1e-9  # rounding must never keep a leader that a full scan would replace


class PersonalizedState(NamedTuple):
    """Each type's leading items, and by how much they lead.

    The index of item j is (‖S_ij‖₁ + bonus) / N_ij. Between scans only shown items are looked at. An unshown
    item's index can rise in two ways: the bonus grows, by at most bonus / bonus at the scan; and its exposure
    shrinks through ρ̂, by at most the smallest ρ̂_k / ρ̂_k at the scan. While the leaders stay above the best
    unshown index so inflated, a scan would find the same leaders.
    """

    learner: Learner
    leaders: Indices  # (N, K) items by decreasing index
    positions: Indices  # (N, K) positions by decreasing ρ̂
    scan_inverses: Floats  # (N, K) 1 / ρ̂ at the last scan
    scan_bonuses: Floats  # (N,) the bonus at the last scan
    challengers: Floats  # (N,) the best unshown index at the last scan; infinite to force one
    indices: Floats  # (M,) room


def start_personalized(counts: Counts, scratch: Scratch) -> PersonalizedState:
    """Return the state for counts."""
    n, m, k = counts.n_user_types, counts.n_items, counts.n_positions
    return PersonalizedState(
        start_learner(counts, scratch.explorations),
        np.zeros((n, k), dtype=np.uintp),
        np.tile(np.arange(k, dtype=np.uintp), (n, 1)),
        np.zeros((n, k)),
        np.zeros(n),
        np.full(n, np.inf),
        np.zeros(m),
    )


@inlined
def _index(learner: Learner, user_type: int, item: int, bonus: float) -> float:
    """Return μ̂_ij + bonus / N_ij."""
    exposure = exposure_of(learner.displays, learner.evidence.preferences, user_type, item)
    return float(learner.reward_totals[user_type, item] + bonus) / exposure


@inlined
def _rank(
    state: PersonalizedState,
    user_type: int,
    t: int,
    exploration: float,
    bonus: float,
    rng: np.random.Generator,
    ranking: Indices,
) -> None:
    clock = state.learner.clock
    n_items = state.indices.size
    if clock[UNREWARDED] > 0:
        round_robin(t, n_items, ranking)
    elif exploration > 0.0 and rng.random() < exploration:
        round_robin(clock[EXPLORATIONS], n_items, ranking)
        clock[EXPLORATIONS] = clock[EXPLORATIONS] % n_items + 1
        state.challengers[user_type] = np.inf  # unshown items are about to change
    else:
        _follow_leaders(state, user_type, bonus, ranking)


@inlined
def _follow_leaders(state: PersonalizedState, user_type: int, bonus: float, ranking: Indices) -> None:
    i = user_type
    preferences = state.learner.evidence.preferences
    shrinkage = np.inf
    for k in range(ranking.size):
        shrinkage = min(shrinkage, preferences[i, k] * state.scan_inverses[i, k])
    in_order = True  # and no ties, which are settled by sorting again
    lowest = np.inf
    for rank in range(ranking.size):
        index = _index(state.learner, i, state.leaders[i, rank], bonus)
        in_order &= index < lowest
        lowest = min(lowest, index)
    last = np.inf
    for rank in range(ranking.size):
        preference = preferences[i, state.positions[i, rank]]
        in_order &= preference < last
        last = preference
    challenger = state.challengers[i]
    if bonus > state.scan_bonuses[i]:
        challenger *= bonus / state.scan_bonuses[i]
    if not lowest * shrinkage * _MARGIN > challenger:
        _scan(state, i, bonus)
        _order_positions(state, i)
    elif not in_order:
        _order_leaders(state, i, bonus)
        _order_positions(state, i)
    for rank in range(ranking.size):
        ranking[state.positions[i, rank]] = state.leaders[i, rank]


@compiled
def _scan(state: PersonalizedState, user_type: int, bonus: float) -> None:
    """Find the leaders among all items. Ties go to the lower number."""
    i = user_type
    learner, indices = state.learner, state.indices
    preferences = learner.evidence.preferences
    estimate_preferences(learner.displays, learner.rewards, learner.evidence, i)  # sheds rounding errors
    exposures_of(learner.displays, preferences, i, indices)
    for j in range(indices.size):
        indices[j] = (learner.reward_totals[i, j] + bonus) / indices[j]
    for rank in range(preferences.shape[1]):
        best = 0
        for j in range(1, indices.size):
            if indices[j] > indices[best]:
                best = j
        state.leaders[i, rank] = best
        indices[best] = -1.0
    challenger = -1.0  # when every item is shown there is none
    for j in range(indices.size):
        challenger = max(challenger, indices[j])
    state.challengers[i] = challenger
    state.scan_bonuses[i] = bonus
    for k in range(preferences.shape[1]):
        state.scan_inverses[i, k] = 1.0 / preferences[i, k]


@compiled
def _order_leaders(state: PersonalizedState, user_type: int, bonus: float) -> None:
    """Sort the leaders by decreasing index; ties by number."""
    i = user_type
    for rank in range(state.leaders.shape[1]):
        item = state.leaders[i, rank]
        index = _index(state.learner, i, item, bonus)
        place = rank
        while place > 0 and (
            state.indices[place - 1] < index
            or (state.indices[place - 1] == index and state.leaders[i, place - 1] > item)
        ):
            state.indices[place] = state.indices[place - 1]
            state.leaders[i, place] = state.leaders[i, place - 1]
            place -= 1
        state.indices[place] = index
        state.leaders[i, place] = item


@compiled
def _order_positions(state: PersonalizedState, user_type: int) -> None:
    """Sort the positions by decreasing ρ̂; ties by number."""
    i = user_type
    preferences = state.learner.evidence.preferences
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
    learn(state.learner, user_type, t, ranking, rewards)


PERSONALIZED = Kernel(_rank, _observe)
