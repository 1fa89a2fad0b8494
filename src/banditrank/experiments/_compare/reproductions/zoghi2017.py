"""Zoghi et al. (2017), "Online learning to rank in stochastic click models": BatchRank."""

from banditrank.experiments._compare.reproductions.problems import CLICK_MODELS, TEN_ITEMS, TEN_ITEMS_SETTING
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    PolicyRun,
    RegretReproduction,
    RunResults,
    catalog_run,
    runs_under_both_models,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import CASCADE
from banditrank.policies.baselines._ranked_bandits import RankedBandits


def _ranked_exp3(model: str) -> PolicyRun:
    return PolicyRun(
        label="ranked EXP3",
        policy=lambda horizon: RankedBandits(bandit="exp3", horizon=horizon),
        problem=TEN_ITEMS,
        click_model=CLICK_MODELS[model],
        panel=model,
    )


def _checks(results: RunResults) -> list[Check]:
    return [
        *(
            results.less(
                f"batch-rank-{model}",
                f"ranked-exp3-{model}",
                f"Under the {model} model BatchRank has less regret than ranked bandits with EXP3",
            )
            for model in CLICK_MODELS
        ),
        results.less(
            "cascade-kl-ucb-cascade",
            "batch-rank-cascade",
            "Under the cascade model CascadeKL-UCB, designed for it, has less regret than BatchRank",
        ),
    ]


BATCH_RANK = RegretReproduction(
    policy="batch-rank",
    title="BatchRank, under two click models",
    claim="BatchRank learns under both the position-based and the cascade model, and in the long run its "
    "regret is below that of ranked bandits with EXP3. Under the cascade model CascadeKL-UCB, which is "
    "designed for it, has less regret (Zoghi et al., ICML 2017, the figures of its experiments).",
    setting=TEN_ITEMS_SETTING,
    runs={
        **runs_under_both_models(TEN_ITEMS, "batch-rank"),
        **{f"ranked-exp3-{model}": _ranked_exp3(model) for model in CLICK_MODELS},
        "cascade-kl-ucb-cascade": catalog_run(
            "cascade-kl-ucb", TEN_ITEMS, CASCADE, "cascade", microseconds_per_round=6.0
        ),
    },
    checks=_checks,
    horizon=300_000,
    replications=6,
    quick_horizon=60_000,
)
