"""Policies for contextual problems, by name."""

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model._click_models import SINGLE_LOOK, ClickModel, PositionBased, as_click_model
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._rewards import BernoulliRewards, Rewards, as_rewards
from banditrank.model._user_clusters import cluster_users
from banditrank.policies._base import CompiledPolicy
from banditrank.policies._catalog import AUTO
from banditrank.policies._contextual.base import ContextualPolicy
from banditrank.policies._contextual.clustered import ClusteredPolicy
from banditrank.policies._contextual.lin_pbm import LinTS, LinUCB
from banditrank.policies._contextual.positions import position_weights
from banditrank.policies._contextual.thompson_rank import ContextualThompsonRank
from banditrank.policies._thompson_rank import ThompsonRank
from banditrank.policies._uniform import UniformRandom

CLUSTER_COUNTS = (2, 4, 8, 16)
"""Numbers of clusters of ThompsonRank in comparisons."""

CLUSTERS_SUFFIX = "-clusters"
"""Suffix of the name of ThompsonRank on clusters of users, after their number."""

_CLUSTERS_PREFIX = f"{ThompsonRank.name}-"
CONTEXTUAL_POLICY_NAMES = (
    AUTO,
    ContextualThompsonRank.name,
    LinUCB.name,
    LinTS.name,
    ThompsonRank.name,
    *(f"{_CLUSTERS_PREFIX}{count}{CLUSTERS_SUFFIX}" for count in CLUSTER_COUNTS),
    UniformRandom.name,
)
"""Names that `make_contextual_policy` accepts; any number of clusters does."""


def make_contextual_policy(
    name: str,
    problem: ContextualProblem,
    *,
    rewards: Rewards | str | None = None,
    click_model: ClickModel | str = SINGLE_LOOK,
) -> CompiledPolicy | ContextualPolicy | ClusteredPolicy:
    """Return a policy for a contextual problem by name.

    Parameters
    ----------
    name
        One of `CONTEXTUAL_POLICY_NAMES`; ``auto`` is ContextualThompsonRank. ``thompson-rank`` takes users as
        the problem's user types, ``thompson-rank-8-clusters`` as 8 clusters by their features.
    problem
        The problem. ContextualThompsonRank knows whether appeal is linear or logistic, LinUCB and LinTS know
        the examination probabilities; policies know nothing else of it.
    rewards, click_model
        The simulation's.

    Raises
    ------
    UnknownNameError
        If there is no policy of that name.
    InvalidInputError
        If a parameter is not valid.

    Examples
    --------
    >>> from banditrank import make_contextual_problem
    >>> make_contextual_policy("auto", make_contextual_problem("logistic", seed=1)).appeal
    'logistic'
    """
    if not isinstance(problem, ContextualProblem):
        raise InvalidInputError("problem", "must be a ContextualProblem", problem)
    max_reward = (BernoulliRewards() if rewards is None else as_rewards(rewards)).scale
    model = as_click_model(click_model)
    looks = {"click_model": "position-based" if model.name == PositionBased.name else "single-look"}
    if name in (AUTO, ContextualThompsonRank.name):
        return ContextualThompsonRank(appeal=problem.appeal, max_reward=max_reward, **looks)  # type: ignore[arg-type]
    if name == UniformRandom.name:
        return UniformRandom()
    if name in (LinUCB.name, LinTS.name):
        examination = tuple(map(tuple, position_weights(problem, model).tolist()))
        return (LinUCB if name == LinUCB.name else LinTS)(examination=examination)
    thompson = ThompsonRank(max_reward=max_reward, **looks)  # type: ignore[arg-type]
    if name == ThompsonRank.name:
        return thompson
    count = name.removeprefix(_CLUSTERS_PREFIX).removesuffix(CLUSTERS_SUFFIX)
    if name != f"{_CLUSTERS_PREFIX}{count}{CLUSTERS_SUFFIX}" or not count.isdecimal():
        raise UnknownNameError("policy", name, CONTEXTUAL_POLICY_NAMES)
    return ClusteredPolicy(thompson, cluster_users(problem, check_integer("n_clusters", int(count), 1)))
