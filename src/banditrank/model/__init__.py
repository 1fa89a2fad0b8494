"""Problems, click models, rewards, and the values of rankings."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.model._catalog import kdd2012, load_problem
    from banditrank.model._changes import make_timeline
    from banditrank.model._click_models import (
        CLICK_MODEL_NAMES,
        Cascade,
        ClickModel,
        DependentClick,
        PositionBased,
        SingleLook,
        as_click_model,
    )
    from banditrank.model._contextual_generators import make_contextual_problem
    from banditrank.model._contextual_problem import ContextualProblem
    from banditrank.model._feature_maps import joint_features
    from banditrank.model._generators import make_problem
    from banditrank.model._problem import Problem
    from banditrank.model._rewards import BernoulliRewards, BetaRewards, Rewards, as_rewards
    from banditrank.model._timeline import Timeline
    from banditrank.model._user_clusters import UserClusters, cluster_users
    from banditrank.model._user_population import UserPopulation
    from banditrank.model._values import (
        best_personalized_rankings,
        best_personalized_values,
        user_type_values,
    )

__all__ = [
    "CLICK_MODEL_NAMES",
    "BernoulliRewards",
    "BetaRewards",
    "Cascade",
    "ClickModel",
    "ContextualProblem",
    "DependentClick",
    "PositionBased",
    "Problem",
    "Rewards",
    "SingleLook",
    "Timeline",
    "UserClusters",
    "UserPopulation",
    "as_click_model",
    "as_rewards",
    "best_personalized_rankings",
    "best_personalized_values",
    "cluster_users",
    "joint_features",
    "kdd2012",
    "load_problem",
    "make_contextual_problem",
    "make_problem",
    "make_timeline",
    "user_type_values",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_user_population": ("UserPopulation",),
            "_user_clusters": ("UserClusters", "cluster_users"),
            "_feature_maps": ("joint_features",),
            "_contextual_problem": ("ContextualProblem",),
            "_contextual_generators": ("make_contextual_problem",),
            "_catalog": (
                "kdd2012",
                "load_problem",
            ),
            "_changes": ("make_timeline",),
            "_click_models": (
                "CLICK_MODEL_NAMES",
                "Cascade",
                "ClickModel",
                "DependentClick",
                "PositionBased",
                "SingleLook",
                "as_click_model",
            ),
            "_generators": ("make_problem",),
            "_problem": ("Problem",),
            "_rewards": (
                "BernoulliRewards",
                "BetaRewards",
                "Rewards",
                "as_rewards",
            ),
            "_timeline": ("Timeline",),
            "_values": (
                "best_personalized_rankings",
                "best_personalized_values",
                "user_type_values",
            ),
        },
    )
