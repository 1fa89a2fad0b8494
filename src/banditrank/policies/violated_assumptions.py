"""Where a world is not what a policy takes it for."""

from collections.abc import Iterator

import numpy as np

from banditrank.model.click_models import ClickModel
from banditrank.model.problem import Problem
from banditrank.model.rewards import Rewards
from banditrank.model.timeline import Timeline, as_timeline
from banditrank.policies.base import Policy
from banditrank.policies.baselines.base import ExaminationBaselinePolicy, OrderedBaselinePolicy
from banditrank.policies.forgetful import Forgetful


def violations(
    policy: Policy, problem: Problem | Timeline, *, rewards: Rewards, click_model: ClickModel
) -> tuple[str, ...]:
    """Return each assumption of a policy that a world violates, as a sentence. It runs there all the same.

    Examples
    --------
    >>> from banditrank import BernoulliRewards, UCBRank, kdd2012
    >>> from banditrank.model.cascade import CASCADE
    >>> print(*violations(UCBRank(0.5), kdd2012(), rewards=BernoulliRewards(), click_model=CASCADE))
    ucb-rank is made for single-look or position-based clicks, not for cascade.
    """
    timeline = as_timeline(problem)
    return tuple(
        f"{policy.name} {sentence}." for sentence in _violated(policy, timeline, rewards, click_model)
    )


def _violated(policy: Policy, timeline: Timeline, rewards: Rewards, click_model: ClickModel) -> Iterator[str]:
    assumed = policy.assumptions
    told = policy.inner if isinstance(policy, Forgetful) else policy  # who was told of positions
    if assumed.click_models and click_model.name not in assumed.click_models:
        yield f"is made for {' or '.join(assumed.click_models)} clicks, not for {click_model.name}"
    if not assumed.allows_graded_rewards and (rewards.concentration > 0 or rewards.scale != 1):
        yield f"is made for clicks, not for rewards {rewards}"
    if assumed.positions == "order":
        yield from _misplaced_order(told, timeline)
    if assumed.positions == "examination":
        yield from _mistaken_examination(told, timeline, click_model)
    if (
        assumed.is_stationary
        and policy.memory is None
        and any(_differs(timeline.problems[0], later) for later in timeline.problems[1:])
    ):
        yield "takes the world for one that stays as it is, and this one changes"
    if policy.treatment == "equal" and assumed.is_utilitarian_only and policy.utility.shape != "linear":
        yield f"seeks the most clicks, not the best {policy.utility} value"


def _misplaced_order(policy: Policy, timeline: Timeline) -> Iterator[str]:
    given = policy.order if isinstance(policy, OrderedBaselinePolicy) else None
    for problem in timeline.problems:
        rows = [range(problem.n_positions)] if given is None else given
        looks = problem.position_preferences
        for i, name in enumerate(problem.user_types):
            order = list(rows[min(i, len(rows) - 1)])
            if (np.diff(looks[i, order]) > 0).any():
                told = " > ".join(str(position + 1) for position in order)
                yield f"takes positions for looked at in the order {told}, which user type {name} does not"
                return


def _mistaken_examination(policy: Policy, timeline: Timeline, click_model: ClickModel) -> Iterator[str]:
    if click_model.depends_on != "cells" or not isinstance(policy, ExaminationBaselinePolicy):
        return  # said already, if it is the model: it is none that it is made for
    given = np.array(policy.examination)
    for problem in timeline.problems:
        if not np.allclose(given, click_model.position_weights(problem), atol=1e-6):
            yield "was told other chances of a look at a position than every user type's"
            return


def _differs(first: Problem, later: Problem) -> bool:
    """Whether anything changes but which items there are."""
    if not np.array_equal(first.arrival_rates, later.arrival_rates):
        return True
    if not np.array_equal(first.position_preferences, later.position_preferences):
        return True
    means = {item: first.item_means[:, number] for number, item in enumerate(first.items)}
    return any(
        not np.array_equal(means[item], later.item_means[:, number])
        for number, item in enumerate(later.items)
        if item in means
    )
