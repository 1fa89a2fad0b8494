"""Assumptions of a policy that a contextual problem violates."""

from collections.abc import Iterator

import numpy as np

from banditrank.model._click_models import ClickModel
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._rewards import Rewards
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._contextual.base import ContextualPolicy
from banditrank.policies._contextual.clustered import ClusteredPolicy
from banditrank.policies._contextual.lin_pbm import LinTS, LinUCB
from banditrank.policies._contextual.positions import position_weights
from banditrank.policies._contextual.thompson_rank import ContextualThompsonRank


def violated_contextual_assumptions(
    policy: CompiledPolicy | ContextualPolicy | ClusteredPolicy,
    problem: ContextualProblem,
    *,
    rewards: Rewards,
    click_model: ClickModel,
) -> tuple[str, ...]:
    """Return each assumption of a policy that a contextual problem violates, as a sentence.

    Parameters
    ----------
    policy
        The policy.
    problem, rewards, click_model
        The problem that it learns.

    Examples
    --------
    >>> from banditrank.model._click_models import SINGLE_LOOK
    >>> from banditrank.model._contextual_generators import make_contextual_problem
    >>> from banditrank.model._rewards import BernoulliRewards
    >>> problem = make_contextual_problem("logistic", seed=1)
    >>> settings = {"rewards": BernoulliRewards(), "click_model": SINGLE_LOOK}
    >>> print(*violated_contextual_assumptions(ContextualThompsonRank(), problem, **settings))
    contextual-thompson-rank assumes linear appeal, not logistic.
    """
    sentences = _sentences(policy, problem, rewards, click_model)
    return tuple(f"{policy.name} {sentence}." for sentence in sentences)


def _sentences(
    policy: CompiledPolicy | ContextualPolicy | ClusteredPolicy,
    problem: ContextualProblem,
    rewards: Rewards,
    click_model: ClickModel,
) -> Iterator[str]:
    assumed = policy.assumptions
    if assumed.click_models and click_model.name not in assumed.click_models:
        yield f"assumes {' or '.join(assumed.click_models)} clicks, not {click_model.name}"
    if not assumed.allows_graded_rewards and (rewards.concentration > 0 or rewards.scale != 1):
        yield f"assumes clicks, not rewards {rewards}"
    if isinstance(policy, ContextualThompsonRank) and policy.appeal != problem.appeal:
        yield f"assumes {policy.appeal} appeal, not {problem.appeal}"
    if isinstance(policy, LinUCB | LinTS):
        if problem.appeal != "linear":
            yield f"assumes linear appeal, not {problem.appeal}"
        weights = position_weights(problem, click_model)
        if click_model.depends_on == "cells" and not np.allclose(policy.examination, weights, atol=1e-6):
            yield "was given other examination probabilities than those of every user type"
    if isinstance(policy, CompiledPolicy | ClusteredPolicy) and policy.name != "random":
        yield "assumes that all users of a type have the same item means"
