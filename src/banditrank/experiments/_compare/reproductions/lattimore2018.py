"""Lattimore, Kveton, Li and Szepesvári (2018), "TopRank": one algorithm for several click models."""

from banditrank.experiments._compare.reproductions.problems import CLICK_MODELS, TEN_ITEMS, TEN_ITEMS_SETTING
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    runs_under_both_models,
)
from banditrank.experiments._study import Check


def _checks(results: RunResults) -> list[Check]:
    return [
        results.less(
            f"top-rank-{model}",
            f"batch-rank-{model}",
            f"Under the {model} model TopRank has less regret than BatchRank",
        )
        for model in CLICK_MODELS
    ]


TOP_RANK = RegretReproduction(
    policy="top-rank",
    title="TopRank, under two click models",
    claim="One algorithm works under the position-based and the cascade model, without knowing which. "
    "In the experiments its regret is below that of BatchRank under both (Lattimore, Kveton, Li and "
    "Szepesvári, NeurIPS 2018, the figure of its experiments).",
    setting=TEN_ITEMS_SETTING,
    runs=runs_under_both_models(TEN_ITEMS, "top-rank", "batch-rank"),
    checks=_checks,
)
