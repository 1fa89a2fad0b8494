"""Gauthier, Gaudel and Fromont (2022), "UniRank": unimodal bandits for several click models."""

from banditrank.experiments._compare.reproductions.problems import CLICK_MODELS, position_based_problem
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check

PROBLEMS = {
    "position-based": position_based_problem(
        (1.0, 0.85, 0.72, 0.61, 0.52, 0.44, 0.38, 0.32, 0.27, 0.23),
        (0.35, 0.1, 0.9, 0.2, 0.55, 0.05, 0.7, 0.15, 0.45, 0.25),
        "all-ten-items",
    ),
    "cascade": position_based_problem(
        (1.0, 0.8, 0.6, 0.5, 0.4),
        (0.35, 0.3, 0.55, 0.28, 0.45, 0.25, 0.5, 0.27, 0.4, 0.32),
        "ten-similar-items",
    ),
}
"""A problem for each click model, on which gaps are small or positions many."""


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
    setting="UniRank does not know the number of rounds, which sets the confidence level of TopRank: its "
    "advantage shows where positions are many or items alike, over a million rounds here and ten million in "
    "the paper; ten items are ranked in ten positions (position-based) or five (cascade, similar items), "
    "with click rates of our own instead of click models fitted to the log of Yandex.",
    runs={
        f"{name}-{model}": catalog_run(name, PROBLEMS[model], click_model, model)
        for model, click_model in CLICK_MODELS.items()
        for name in ("uni-rank", "top-rank", "batch-rank")
    },
    checks=_checks,
    horizon=1_000_000,
    quick_horizon=100_000,
)
