"""Policies, which choose a ranking from counts."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.policies._base import CompiledPolicy, Policy
    from banditrank.policies._catalog import POLICY_NAMES, make_policy
    from banditrank.policies._conservative import Conservative
    from banditrank.policies._contextual.base import ContextualEstimates, ContextualPolicy
    from banditrank.policies._contextual.catalog import CONTEXTUAL_POLICY_NAMES, make_contextual_policy
    from banditrank.policies._contextual.clustered import ClusteredPolicy
    from banditrank.policies._contextual.learner import ContextualLearner
    from banditrank.policies._contextual.lin_pbm import LinTS, LinUCB
    from banditrank.policies._contextual.thompson_rank import ContextualThompsonRank
    from banditrank.policies._fixed_ranking import FixedRanking
    from banditrank.policies._forgetful import Forgetful
    from banditrank.policies._greedy_rank import GreedyRank
    from banditrank.policies._learner import Learner
    from banditrank.policies._oracle import Oracle
    from banditrank.policies._thompson_rank import ThompsonRank
    from banditrank.policies._type_blind import TypeBlind, TypeBlindUCB
    from banditrank.policies._ucb_rank import UCBRank
    from banditrank.policies._uniform import UniformRandom
    from banditrank.policies.baselines import (
        CTS,
        CUCB,
        FTRLPBM,
        GRAB,
        PBMHB,
        PBMPIE,
        PBMTS,
        PBMUCB,
        PMED,
        BatchRank,
        BubbleRank,
        CascadeKLUCB,
        CascadeTS,
        CombUCB1,
        NashUCB,
        RankedBandits,
        TopRank,
        UniRank,
    )
    from banditrank.policies.schedules import Schedule

__all__ = [
    "CONTEXTUAL_POLICY_NAMES",
    "CTS",
    "CUCB",
    "FTRLPBM",
    "GRAB",
    "PBMHB",
    "PBMPIE",
    "PBMTS",
    "PBMUCB",
    "PMED",
    "POLICY_NAMES",
    "BatchRank",
    "BubbleRank",
    "CascadeKLUCB",
    "CascadeTS",
    "ClusteredPolicy",
    "CombUCB1",
    "CompiledPolicy",
    "Conservative",
    "ContextualEstimates",
    "ContextualLearner",
    "ContextualPolicy",
    "ContextualThompsonRank",
    "FixedRanking",
    "Forgetful",
    "GreedyRank",
    "Learner",
    "LinTS",
    "LinUCB",
    "NashUCB",
    "Oracle",
    "Policy",
    "RankedBandits",
    "Schedule",
    "ThompsonRank",
    "TopRank",
    "TypeBlind",
    "TypeBlindUCB",
    "UCBRank",
    "UniRank",
    "UniformRandom",
    "make_contextual_policy",
    "make_policy",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_contextual.thompson_rank": ("ContextualThompsonRank",),
            "_contextual.lin_pbm": ("LinTS", "LinUCB"),
            "_contextual.learner": ("ContextualLearner",),
            "_contextual.clustered": ("ClusteredPolicy",),
            "_contextual.catalog": ("CONTEXTUAL_POLICY_NAMES", "make_contextual_policy"),
            "_contextual.base": ("ContextualEstimates", "ContextualPolicy"),
            "_base": (
                "CompiledPolicy",
                "Policy",
            ),
            "_catalog": (
                "POLICY_NAMES",
                "make_policy",
            ),
            "_conservative": ("Conservative",),
            "_fixed_ranking": ("FixedRanking",),
            "_forgetful": ("Forgetful",),
            "_greedy_rank": ("GreedyRank",),
            "_learner": ("Learner",),
            "_oracle": ("Oracle",),
            "schedules": ("Schedule",),
            "_thompson_rank": ("ThompsonRank",),
            "_type_blind": (
                "TypeBlind",
                "TypeBlindUCB",
            ),
            "_ucb_rank": ("UCBRank",),
            "_uniform": ("UniformRandom",),
            "baselines": (
                "BatchRank",
                "BubbleRank",
                "CTS",
                "CUCB",
                "CascadeKLUCB",
                "CascadeTS",
                "CombUCB1",
                "FTRLPBM",
                "GRAB",
                "NashUCB",
                "PBMHB",
                "PBMPIE",
                "PBMTS",
                "PBMUCB",
                "PMED",
                "RankedBandits",
                "TopRank",
                "UniRank",
            ),
        },
    )
