"""The queue of rankings that PMED shows next: the leader, and rankings that were displayed too little."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal, merged
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.policies.baselines._components.pmed.alternatives import set_beliefs
from banditrank.policies.baselines._components.pmed.program import Program, solve_program
from banditrank.policies.baselines._components.pmed.simplex import RANKING

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]
Integers = NDArray[np.int64]

MIN_ESTIMATE, MAX_ESTIMATE = 1e-4, 0.999  # an item without clicks may still be clicked


@compiled
def scoring_step(
    displays: Floats, rewards: Floats, items: Floats, positions: Floats, user_type: int
) -> float:
    """Update κ given θ, with the largest κ being 1, then θ given κ; return the largest relative change of θ.

    At the maximum of the likelihood Σ_k (S_jk − T_jk θ_j κ_k) / (1 − θ_j κ_k) = 0. Each step solves this for
    θ_j, and likewise for κ_k, with the denominators of the last step: Fisher scoring.

    Parameters
    ----------
    displays, rewards
        Shape (N, K, M). Every item and every position has a display.
    items, positions
        Shapes (N, M) and (N, K).
    user_type
        Copy to update.
    """
    i = user_type
    n_positions, n_items = displays.shape[1:]
    largest = 0.0
    for k in range(n_positions):
        clicks, looks = 0.0, 0.0
        for j in range(n_items):
            weight = 1.0 / (1.0 - items[i, j] * positions[i, k])
            clicks += weight * rewards[i, k, j]
            looks += weight * displays[i, k, j] * items[i, j]
        positions[i, k] = clicks / looks
        largest = max(largest, positions[i, k])
    for k in range(n_positions):
        positions[i, k] = max(MIN_ESTIMATE, positions[i, k] / largest) if largest > 0.0 else 1.0
    change = 0.0
    for j in range(n_items):
        clicks, looks = 0.0, 0.0
        for k in range(n_positions):
            weight = 1.0 / (1.0 - items[i, j] * positions[i, k])
            clicks += weight * rewards[i, k, j]
            looks += weight * displays[i, k, j] * positions[i, k]
        improved = min(MAX_ESTIMATE, max(MIN_ESTIMATE, clicks / looks))
        change = max(change, abs(improved - items[i, j]) / improved)
        items[i, j] = improved
    return change


GROWTH = 1.1  # of a copy's rounds, between two solutions of the program
MAX_PASSES = 100  # of the estimates before a solution
TOLERANCE = 1e-6


class Plan(NamedTuple):
    """Estimates and queue of each copy. It can be rebuilt from the counts."""

    items: Floats  # (N, M) θ
    positions: Floats  # (N, K) κ
    solve_at: Floats  # (N,) rounds of the next solution; 0 without estimates
    required: Indices  # (N, R, K) rankings to explore
    amounts: Floats  # (N, R) required displays of each, over ln t
    n_required: Integers  # (N,)
    queue: Indices  # (N, Q, K) rankings to show, each once
    n_queued: Integers  # (N,)


class PMEDState(NamedTuple):
    """Counts, plan, and workspaces."""

    displays: Floats  # (N, K, M)
    rewards: Floats  # (N, K, M)
    arrivals: Floats  # (N,)
    plan: Plan
    program: Program
    leaders: Indices  # (K,) items by decreasing θ
    order: Indices  # (K,) positions by decreasing κ
    unspent: Floats  # (K, M) displays that no required ranking has used
    labels: Indices  # (M,) items in the order of the program
    shuffled: Floats  # (M,) θ in that order
    seats: Indices  # (K,) indices of the leading items in that order


def empty_plan(n_copies: int, n_items: int, n_positions: int, n_rows: int) -> Plan:
    """Return an empty plan."""
    n, m, k = n_copies, n_items, n_positions
    return Plan(
        *(np.zeros((n, m)), np.zeros((n, k)), np.zeros(n)),
        *(np.zeros((n, n_rows, k), dtype=np.uintp), np.zeros((n, n_rows)), np.zeros(n, dtype=np.int64)),
        *(np.zeros((n, m + n_rows + 1, k), dtype=np.uintp), np.zeros(n, dtype=np.int64)),
    )


@merged
def fill_queue(state: PMEDState, user_type: int, alpha: float, rng: np.random.Generator) -> None:
    """Queue the leading ranking, and rankings that were displayed too little."""
    i = user_type
    plan, displays = state.plan, state.displays
    n_positions, n_items = displays.shape[1:]
    log_t = math.log(state.arrivals[i] + 1.0)
    enough = max(1.0, alpha * math.sqrt(log_t))
    least = np.inf
    for first in range(n_items):  # together these rankings contain every cell once
        neglected = False
        for k in range(n_positions):
            shown = displays[i, k, (first + k) % n_items]
            neglected |= shown < enough
            least = min(least, shown)
        if neglected:
            for k in range(n_positions):
                state.order[k] = (first + k) % n_items
            _queue(plan, i, state.order)
    if least < 1.0:
        return
    _estimate(state, i)
    top_k(plan.items[i], state.leaders)
    top_k(plan.positions[i], state.order)
    if state.arrivals[i] >= plan.solve_at[i]:
        _solve(state, i, rng)
    _queue_required(state, i, log_t)
    size = plan.n_queued[i]
    assign_in_order(state.leaders, state.order, plan.queue[i, size])
    plan.n_queued[i] = size + 1


@internal
def _estimate(state: PMEDState, user_type: int) -> None:
    i = user_type
    plan = state.plan
    if plan.solve_at[i] == 0.0:
        for j in range(plan.items.shape[1]):
            plan.items[i, j] = 0.1
        for k in range(plan.positions.shape[1]):
            plan.positions[i, k] = 1.0
    for _ in range(MAX_PASSES if state.arrivals[i] >= plan.solve_at[i] else 1):
        change = scoring_step(state.displays, state.rewards, plan.items, plan.positions, i)
        if change < TOLERANCE:
            break


@merged
def _solve(state: PMEDState, user_type: int, rng: np.random.Generator) -> None:
    """Solve the program with shuffled items, because it has many solutions and indices must not decide."""
    i = user_type
    plan, labels = state.plan, state.labels
    for j in range(labels.size):
        other = int(rng.random() * (j + 1))
        labels[j] = labels[other]
        labels[other] = j
    for j in range(labels.size):
        state.shuffled[j] = plan.items[i, labels[j]]
    top_k(state.shuffled, state.seats)
    set_beliefs(state.program.alternatives, state.shuffled, plan.positions[i], state.seats, state.order)
    solve_program(state.program, state.seats)
    _require(state, i)
    plan.solve_at[i] = GROWTH * state.arrivals[i]


@internal
def _require(state: PMEDState, user_type: int) -> None:
    """Write the rankings that the program requires, positions by index, by increasing amount.

    Displays that two of them share then go to the smaller requirement, which they may fulfil.
    """
    i = user_type
    plan, basis = state.plan, state.program.basis
    size = 0
    for b in range(basis.rows[0]):
        if basis.kinds[b] == RANKING and basis.levels[b] > 0.0:
            place = size
            while place > 0 and plan.amounts[i, place - 1] > basis.levels[b]:
                plan.amounts[i, place] = plan.amounts[i, place - 1]
                for k in range(state.order.size):
                    plan.required[i, place, k] = plan.required[i, place - 1, k]
                place -= 1
            plan.amounts[i, place] = basis.levels[b]
            for r in range(state.order.size):
                plan.required[i, place, state.order[r]] = state.labels[basis.rankings[b, r]]
            size += 1
    plan.n_required[i] = size


@internal
def _queue_required(state: PMEDState, user_type: int, log_t: float) -> None:
    """Queue the required rankings whose displays are not sufficient."""
    i = user_type
    plan, unspent = state.plan, state.unspent
    n_positions, n_items = unspent.shape
    for k in range(n_positions):
        for j in range(n_items):
            unspent[k, j] = state.displays[i, k, j]
    for index in range(plan.n_required[i]):
        asked, affordable = plan.amounts[i, index] * log_t, np.inf
        for k in range(n_positions):
            affordable = min(affordable, unspent[k, plan.required[i, index, k]])
        for k in range(n_positions):
            unspent[k, plan.required[i, index, k]] -= min(asked, affordable)
        if affordable < asked:
            _queue(plan, i, plan.required[i, index])


@internal
def _queue(plan: Plan, user_type: int, ranking: Indices) -> None:
    """Queue a ranking, unless each of its cells is in the queue already."""
    size = plan.n_queued[user_type]
    news = False
    for k in range(ranking.size):
        known = False
        for place in range(size):
            known |= plan.queue[user_type, place, k] == ranking[k]
        news |= not known
    if news:
        for k in range(ranking.size):
            plan.queue[user_type, size, k] = ranking[k]
        plan.n_queued[user_type] = size + 1
