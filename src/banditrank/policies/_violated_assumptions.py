"""Assumptions of a policy that a problem violates."""

from collections.abc import Iterator

import numpy as np

from banditrank.model._click_models import ClickModel
from banditrank.model._problem import Problem
from banditrank.model._rewards import Rewards
from banditrank.model._timeline import Timeline, as_timeline
from banditrank.policies._base import Policy, is_equal
from banditrank.policies._wrapper import PolicyWrapper
from banditrank.policies.baselines._base import ExaminationBaselinePolicy, OrderedBaselinePolicy


def violated_assumptions(
    policy: Policy, problem: Problem | Timeline, *, rewards: Rewards, click_model: ClickModel
) -> tuple[str, ...]:
    """Return each assumption of a policy that a problem violates, as a sentence.

    A policy runs on any problem; its guarantees do not hold where an assumption is violated.

    Parameters
    ----------
    policy
        The policy.
    problem, rewards, click_model
        The problem that it learns.

    Examples
    --------
    >>> from banditrank import BernoulliRewards, UCBRank, kdd2012
    >>> from banditrank.model._click_models import CASCADE
    >>> print(*violated_assumptions(UCBRank(), kdd2012(), rewards=BernoulliRewards(), click_model=CASCADE))
    ucb-rank assumes single-look or position-based clicks, not cascade.
    """
    timeline = as_timeline(problem)
    return tuple(
        f"{policy.name} {sentence}." for sentence in _sentences(policy, timeline, rewards, click_model)
    )


def _sentences(
    policy: Policy, timeline: Timeline, rewards: Rewards, click_model: ClickModel
) -> Iterator[str]:
    assumed = policy.assumptions
    informed = policy  # the one that knows about positions
    while isinstance(informed, PolicyWrapper):
        informed = informed.policy
    if assumed.click_models and click_model.name not in assumed.click_models:
        yield f"assumes {' or '.join(assumed.click_models)} clicks, not {click_model.name}"
    if not assumed.allows_graded_rewards and (rewards.concentration > 0 or rewards.scale != 1):
        yield f"assumes clicks, not rewards {rewards}"
    if assumed.positions == "order":
        yield from _wrong_order(informed, timeline)
    if assumed.positions == "examination":
        yield from _wrong_examination(informed, timeline, click_model)
    if (
        assumed.is_stationary
        and policy.memory is None
        and any(_differs(timeline.problems[0], later) for later in timeline.problems[1:])
    ):
        yield "assumes that the problem does not change"
    if is_equal(policy.treatment) and assumed.is_utilitarian_only and policy.utility.shape != "linear":
        yield f"maximises clicks, not {policy.utility} utility"


def _wrong_order(policy: Policy, timeline: Timeline) -> Iterator[str]:
    given = policy.order if isinstance(policy, OrderedBaselinePolicy) else None
    for problem in timeline.problems:
        rows = [range(problem.n_positions)] if given is None else given
        looks = problem.position_preferences
        for i, name in enumerate(problem.user_types):
            order = list(rows[min(i, len(rows) - 1)])
            if (np.diff(looks[i, order]) > 0).any():
                assumed = " > ".join(str(position + 1) for position in order)
                yield f"assumes that positions are examined in the order {assumed}, unlike user type {name}"
                return


def _wrong_examination(policy: Policy, timeline: Timeline, click_model: ClickModel) -> Iterator[str]:
    if click_model.depends_on != "cells" or not isinstance(policy, ExaminationBaselinePolicy):
        return  # the click model itself is reported
    given = np.array(policy.examination)
    for problem in timeline.problems:
        if not np.allclose(given, click_model.position_weights(problem), atol=1e-6):
            yield "was given other examination probabilities than those of every user type"
            return


def _differs(first: Problem, later: Problem) -> bool:
    """Return whether anything changes, other than which items there are."""
    if not np.array_equal(first.arrival_rates, later.arrival_rates):
        return True
    if not np.array_equal(first.position_preferences, later.position_preferences):
        return True
    means = {item: first.item_means[:, index] for index, item in enumerate(first.items)}
    return any(
        not np.array_equal(means[item], later.item_means[:, index])
        for index, item in enumerate(later.items)
        if item in means
    )
