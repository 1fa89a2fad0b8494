"""Gauthier, Gaudel and Fromont (2022), "UniRank": unimodal bandits for several click models."""

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
            f"uni-rank-{model}",
            f"{other}-{model}",
            f"Under the {model} model UniRank has less regret than {other}",
        )
        for model in CLICK_MODELS
        for other in ("top-rank", "batch-rank")
    ]


UNI_RANK = RegretReproduction(
    policy="uni-rank",
    title="UniRank, under two click models",
    claim="UniRank's regret is logarithmic in rounds under both the position-based and the cascade model. It "
    "has lower regret than other generic algorithms, such as TopRank, on synthetic and real data (Gauthier, "
    "Gaudel and Fromont, ICML 2022, the figures of its experiments).",
    setting=TEN_ITEMS_SETTING,
    runs=runs_under_both_models(TEN_ITEMS, "uni-rank", "top-rank", "batch-rank"),
    checks=_checks,
)
