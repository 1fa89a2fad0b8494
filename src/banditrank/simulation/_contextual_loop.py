"""The compiled loop of contextual problems: one round after another, for any policy and click model.

It is compiled once, and calls the functions of the policy and the click model by address. In each round it
writes the joint features of a user and all items where the policy reads them, and the means of all items
where the click model reads them.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled, internal
from banditrank.model._bound_click_model import ClickHandle, draw_by_handle, value_by_handle
from banditrank.model._feature_maps import write_joint_features
from banditrank.model._user_clusters import nearest_centroid
from banditrank.model._user_population import CompiledUsers, draw_user
from banditrank.policies._bound_kernel import KernelHandle, observe_by_handle, rank_by_handle
from banditrank.policies._sorting import assign_in_order, top_k
from banditrank.simulation._loop import OPTIMAL_TOLERANCE, RunTotals

Floats = NDArray[np.float64]
Indices = NDArray[np.uintp]

NO_CLUSTERS, FEATURE_CLUSTERS, MEAN_CLUSTERS = range(3)


class ContextualWorkspace(NamedTuple):
    """A contextual problem, and the arrays that a round is written to."""

    users: CompiledUsers
    item_features: Floats  # (M, q)
    weights: Floats  # (d,)
    feature_map: int
    is_logistic: bool
    user: Floats  # (p,)
    features: Floats  # (M, d), which the policy reads
    item_means: Floats  # (N, M), of which the click model reads the row of the user's type
    position_order: Indices  # (N, K) by decreasing preference
    best_items: Indices  # (K,)
    shown: Indices  # (K,)
    cluster_space: int
    centroids: Floats  # (clusters, p) or (clusters, M)


class ContextDelayBuffer(NamedTuple):
    """Ring buffer of rounds whose rewards have not arrived yet."""

    delay: int  # D, 0 if rewards arrive at once
    users: Floats  # (D, p)
    user_types: NDArray[np.intp]  # (D,) as the policy distinguishes them
    rankings: Indices  # (D, K)
    rewards: Floats  # (D, K)


def init_context_delay_buffer(delay: int, n_user_features: int, n_positions: int) -> ContextDelayBuffer:
    """Return an empty buffer; without a delay, of one round that is never used."""
    rounds = max(delay, 1)
    return ContextDelayBuffer(
        delay,
        np.zeros((rounds, n_user_features)),
        np.zeros(rounds, dtype=np.intp),
        np.zeros((rounds, n_positions), dtype=np.uintp),
        np.zeros((rounds, n_positions)),
    )


@internal
def _write_means(features: Floats, weights: Floats, is_logistic: bool, means: Floats) -> None:  # noqa: FBT001
    """Write the mean of each item, shape (M,)."""
    for j in range(means.size):
        score = 0.0
        for index in range(weights.size):
            score += features[j, index] * weights[index]
        means[j] = 1.0 / (1.0 + math.exp(-score)) if is_logistic else min(max(score, 0.0), 1.0)


@internal
def _seen_type(workspace: ContextualWorkspace, user_type: int) -> int:
    """Return the user type as the policy distinguishes them."""
    if workspace.cluster_space == FEATURE_CLUSTERS:
        return nearest_centroid(workspace.centroids, workspace.user)
    if workspace.cluster_space == MEAN_CLUSTERS:
        return nearest_centroid(workspace.centroids, workspace.item_means[user_type])
    return user_type


@internal
def _best_value(
    workspace: ContextualWorkspace, clicks: ClickHandle, user_type: int, ranking: Indices
) -> float:
    """Return the value of the best ranking, by way of the ranking that the click model is bound to."""
    for k in range(ranking.size):
        workspace.shown[k] = ranking[k]
    top_k(workspace.item_means[user_type], workspace.best_items)
    assign_in_order(workspace.best_items, workspace.position_order[user_type], ranking)
    best = value_by_handle(clicks, user_type, ranking)
    for k in range(ranking.size):
        ranking[k] = workspace.shown[k]
    return best


@compiled
def run_contextual_rounds(
    kernel: KernelHandle,
    clicks: ClickHandle,
    workspace: ContextualWorkspace,
    run_totals: RunTotals,
    delay: ContextDelayBuffer,
    scale: float,
    first_round: int,
    parameters: Floats,
    arrivals_rng: np.random.Generator,
    clicks_rng: np.random.Generator,
    policy_rng: np.random.Generator,
    ranking: Indices,
    rewards: Floats,
) -> None:
    """Run rounds: one for each row of parameters."""
    regret, optimal = run_totals.totals[0], run_totals.totals[1]
    checkpoint = run_totals.next_checkpoint[0]
    item_features, user, features = workspace.item_features, workspace.user, workspace.features
    for step in range(parameters.shape[0]):
        t = first_round + step
        user_type = draw_user(workspace.users, arrivals_rng, user)
        write_joint_features(workspace.feature_map, user, item_features, features)
        _write_means(features, workspace.weights, workspace.is_logistic, workspace.item_means[user_type])
        seen_type = _seen_type(workspace, user_type)
        rank_by_handle(kernel, seen_type, t, parameters[step], policy_rng, ranking)
        draw_by_handle(clicks, user_type, ranking, clicks_rng, rewards)
        gap = _best_value(workspace, clicks, user_type, ranking)
        gap -= value_by_handle(clicks, user_type, ranking)
        if delay.delay == 0:
            observe_by_handle(kernel, seen_type, t, ranking, rewards)
        else:
            slot = t % delay.delay
            if t > delay.delay:
                write_joint_features(workspace.feature_map, delay.users[slot], item_features, features)
                observe_by_handle(
                    kernel, delay.user_types[slot], t, delay.rankings[slot], delay.rewards[slot]
                )
            delay.user_types[slot] = seen_type
            for index in range(user.size):
                delay.users[slot, index] = user[index]
            for k in range(ranking.size):
                delay.rankings[slot, k] = ranking[k]
                delay.rewards[slot, k] = rewards[k]
        regret += gap
        optimal += gap <= OPTIMAL_TOLERANCE * scale
        if t == run_totals.checkpoints[checkpoint]:
            run_totals.curves[0, checkpoint] = regret
            run_totals.curves[1, checkpoint] = optimal
            checkpoint += 1
    run_totals.totals[0], run_totals.totals[1] = regret, optimal
    run_totals.next_checkpoint[0] = checkpoint
