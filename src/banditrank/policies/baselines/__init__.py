"""Baselines: policies of other papers, each implemented from its paper."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.policies.baselines._batch_rank import BatchRank
    from banditrank.policies.baselines._bubble_rank import BubbleRank
    from banditrank.policies.baselines._cascade_kl_ucb import CascadeKLUCB
    from banditrank.policies.baselines._cascade_ts import CascadeTS
    from banditrank.policies.baselines._comb_ucb1 import CombUCB1
    from banditrank.policies.baselines._cts import CTS
    from banditrank.policies.baselines._cucb import CUCB
    from banditrank.policies.baselines._ftrl_pbm import FTRLPBM
    from banditrank.policies.baselines._grab import GRAB
    from banditrank.policies.baselines._nash_ucb import NashUCB
    from banditrank.policies.baselines._pb_mhb import PBMHB
    from banditrank.policies.baselines._pbm_pie import PBMPIE
    from banditrank.policies.baselines._pbm_ts import PBMTS
    from banditrank.policies.baselines._pbm_ucb import PBMUCB
    from banditrank.policies.baselines._pmed import PMED
    from banditrank.policies.baselines._ranked_bandits import RankedBandits
    from banditrank.policies.baselines._top_rank import TopRank
    from banditrank.policies.baselines._uni_rank import UniRank

__all__ = [
    "CTS",
    "CUCB",
    "FTRLPBM",
    "GRAB",
    "PBMHB",
    "PBMPIE",
    "PBMTS",
    "PBMUCB",
    "PMED",
    "BatchRank",
    "BubbleRank",
    "CascadeKLUCB",
    "CascadeTS",
    "CombUCB1",
    "NashUCB",
    "RankedBandits",
    "TopRank",
    "UniRank",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_batch_rank": ("BatchRank",),
            "_bubble_rank": ("BubbleRank",),
            "_cascade_kl_ucb": ("CascadeKLUCB",),
            "_cascade_ts": ("CascadeTS",),
            "_comb_ucb1": ("CombUCB1",),
            "_cts": ("CTS",),
            "_cucb": ("CUCB",),
            "_ftrl_pbm": ("FTRLPBM",),
            "_grab": ("GRAB",),
            "_nash_ucb": ("NashUCB",),
            "_pb_mhb": ("PBMHB",),
            "_pbm_pie": ("PBMPIE",),
            "_pbm_ts": ("PBMTS",),
            "_pbm_ucb": ("PBMUCB",),
            "_pmed": ("PMED",),
            "_ranked_bandits": ("RankedBandits",),
            "_top_rank": ("TopRank",),
            "_uni_rank": ("UniRank",),
        },
    )
