"""Pricing: the ranking that improves a lottery most, and the bound that it proves.

A lottery shows item j at position k with probability X_jk. Its value to type i is u_i = Σ_jk ρ_ik μ_ij X_jk,
and guarantee m holds if c_m·X is at least its level d_m. For any tangent point and any prices y ≥ 0 of the
guarantees, no lottery that keeps them exceeds F − G + t − y·d, where t is the optimal assignment for the
scores V_kj = Σ_i (g_i + y_i) ρ_ik μ_ij + b_j + z_j ω_k: y_i is the price of a guarantee for type i, z_j that
of all guarantees for item j, and ω_k = Σ_i λ_i ρ_ik the share of users who look at position k.

Under personalized treatment each type has a lottery, with scores ρ_ik ((g_i + y_i) μ_ij + λ_i z_j): sorting
finds the best ranking.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import inlined, internal
from banditrank.solvers._assignment import (
    AssignmentWorkspace,
    assign,
    new_assignment_workspace,
    row_price,
)
from banditrank.solvers._instance import Instance
from banditrank.solvers._tangents import ROUNDING

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class GuaranteeRows(NamedTuple):
    """Guarantees: least exposure of groups of items first, then least values of types."""

    levels: Floats  # (C,) d; those of types are computed from their shares
    item_starts: Integers  # (M + 1,) where an item's groups start in ``item_rows``
    item_rows: Integers  # the groups of each item, one item after the other
    user_types: Integers  # (T,) the type of each guarantee of a value
    shares: Floats  # (T,) of the type's personalized value


class Pricing(NamedTuple):
    """Workspace of pricing."""

    slopes: Floats  # (N,) g + y
    item_prices: Floats  # (M,) z
    looks: Floats  # (K,) ω
    order: Integers  # (N, K) positions, the most examined first
    bests: Floats  # (N,) personalized values
    scores: Floats  # (K, M) V; the first row is the workspace of sorting
    rankings: NDArray[np.uintp]  # (N or 1, K) the best rankings
    scale: Floats  # (1,) of the scores that the prices of the assignment belong to
    workspace: AssignmentWorkspace


def new_pricing(n_user_types: int, n_items: int, n_positions: int, *, is_personalized: bool) -> Pricing:
    """Allocate a workspace for the given sizes."""
    n, m, k = n_user_types, n_items, n_positions
    return Pricing(
        *(np.zeros(n), np.zeros(m), np.zeros(k), np.zeros((n, k), dtype=np.int64), np.zeros(n)),
        *(np.zeros((k, m)), np.zeros((n if is_personalized else 1, k), dtype=np.uintp), np.zeros(1)),
        new_assignment_workspace(m, k),
    )


@internal
def load_pricing(instance: Instance, rows: GuaranteeRows, pricing: Pricing) -> None:
    """Compute what depends on the instance only: ω, personalized values, and levels for types."""
    n_user_types, n_positions = instance.preferences.shape
    for k in range(n_positions):
        pricing.looks[k] = 0.0
        for i in range(n_user_types):
            pricing.looks[k] += instance.weights[i] * instance.preferences[i, k]
    for i in range(n_user_types):
        order = pricing.order[i]
        for k in range(n_positions):  # insertion sort
            place = k
            while place > 0 and instance.preferences[i, order[place - 1]] < instance.preferences[i, k]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = k
        for j in range(instance.means.shape[1]):
            pricing.scores[0, j] = instance.means[i, j]
        pricing.bests[i] = _rank_by_appeal(instance, pricing, i, pricing.rankings[0])
    first = rows.levels.size - rows.user_types.size
    for c in range(rows.user_types.size):
        rows.levels[first + c] = rows.shares[c] * pricing.bests[rows.user_types[c]]


@internal
def _rank_by_appeal(instance: Instance, pricing: Pricing, i: int, ranking: NDArray[np.uintp]) -> float:
    """Write the ranking that maximises Σ_k ρ_ik a_σ(k), a the first row of the scores; return that sum."""
    appeal, order, n_positions = pricing.scores[0], pricing.order[i], ranking.size
    n_items = instance.means.shape[1]
    chosen = pricing.workspace.item_at  # the best items so far, the best first
    for j in range(n_items):
        place = min(j, n_positions)
        if place == n_positions and appeal[j] <= appeal[chosen[n_positions - 1]]:
            continue
        while place > 0 and appeal[chosen[place - 1]] < appeal[j]:
            if place < n_positions:
                chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = j
    total = 0.0
    for place in range(n_positions):
        ranking[order[place]] = chosen[place]
        total += instance.preferences[i, order[place]] * appeal[chosen[place]]
    return total


@inlined
def write_best_ranking(instance: Instance, pricing: Pricing, i: int, ranking: NDArray[np.uintp]) -> None:
    """Write the personalized ranking of a type."""
    for j in range(instance.means.shape[1]):
        pricing.scores[0, j] = instance.means[i, j]
    _rank_by_appeal(instance, pricing, i, ranking)


@internal
def price_rankings(
    instance: Instance, rows: GuaranteeRows, pricing: Pricing, is_personalized: int, with_bonuses: int
) -> float:
    """Write the best rankings for the slopes and item prices, and return an upper bound on their score."""
    n_user_types, n_items = instance.means.shape
    if is_personalized == 0:
        return _price_ranking(instance, rows, pricing, with_bonuses)
    total = 0.0
    for i in range(n_user_types):
        for j in range(n_items):
            pricing.scores[0, j] = (
                pricing.slopes[i] * instance.means[i, j] + instance.weights[i] * pricing.item_prices[j]
            )
        total += _rank_by_appeal(instance, pricing, i, pricing.rankings[i])
    return float(total * (1.0 + (instance.preferences.shape[1] + n_user_types + 8) * ROUNDING))


@internal
def _price_ranking(instance: Instance, rows: GuaranteeRows, pricing: Pricing, with_bonuses: int) -> float:
    """Write the optimal assignment, and return the bound that its prices prove."""
    scores, workspace = pricing.scores, pricing.workspace
    n_positions, n_items = scores.shape
    scale = 0.0
    for i in range(pricing.slopes.size):
        scale += pricing.slopes[i]
    # Prices far above the scores would leave only rounding errors of them.
    if not 0.25 * pricing.scale[0] <= scale <= 4.0 * pricing.scale[0]:
        pricing.scale[0] = scale
        for j in range(n_items):
            workspace.prices[j] = 0.0
    has_guarantees = rows.levels.size > 0
    for k in range(n_positions):
        for j in range(n_items):
            scores[k, j] = instance.bonuses[j] if with_bonuses == 1 else 0.0
        if has_guarantees:
            for j in range(n_items):
                scores[k, j] += pricing.looks[k] * pricing.item_prices[j]
        for i in range(pricing.slopes.size):
            weight = pricing.slopes[i] * instance.preferences[i, k]
            if weight != 0.0:
                for j in range(n_items):
                    scores[k, j] += weight * instance.means[i, j]
    assign(scores, n_items, workspace, pricing.rankings[0])
    bound, size = 0.0, 0.0
    for j in range(n_items):
        bound += workspace.prices[j]
    size += bound
    for k in range(n_positions):
        row = row_price(scores, k, n_items, workspace.prices)
        bound += row
        size += abs(row)
    return float(bound + (n_positions + pricing.slopes.size + 9) * ROUNDING * size)


@internal
def price_items(rows: GuaranteeRows, prices: Floats, pricing: Pricing) -> None:
    """Write z_j, the sum of the prices of an item's guarantees."""
    for j in range(pricing.item_prices.size):
        total = 0.0
        for entry in range(rows.item_starts[j], rows.item_starts[j + 1]):
            total += prices[rows.item_rows[entry]]
        pricing.item_prices[j] = total
