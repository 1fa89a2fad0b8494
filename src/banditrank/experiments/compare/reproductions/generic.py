"""Policies that are to work whatever the click model: TopRank, BatchRank and UniRank."""

from banditrank.experiments.compare.reproductions.trial import Results, Run, Trial, named
from banditrank.experiments.compare.reproductions.worlds import TEN
from banditrank.experiments.study import Check
from banditrank.model.click_models import CASCADE, PositionBased
from banditrank.policies.baselines.ranked_bandits import RankedBandits

MODELS = {"position-based": PositionBased(), "cascade": CASCADE}
SETTING = (
    "Ten items in five positions, as in the paper, but with click rates of our own (.9 to .05, κ from 1 to "
    "0.4) in the place of click models fitted to the log of Yandex, and fewer rounds."
)


def _runs(*names: str) -> dict[str, Run]:
    return {
        f"{name}-{panel}": named(name, TEN, model, panel) for panel, model in MODELS.items() for name in names
    }


def _exploring(panel: str) -> Run:
    return Run(
        label="ranked EXP3",
        policy=lambda horizon: RankedBandits(bandit="exp3", horizon=horizon),
        problem=TEN,
        click_model=MODELS[panel],
        panel=panel,
    )


def _top_rank(results: Results) -> list[Check]:
    return [
        results.less(
            f"top-rank-{panel}",
            f"batch-rank-{panel}",
            f"Under the {panel} model TopRank has less regret than BatchRank",
        )
        for panel in MODELS
    ]


def _batch_rank(results: Results) -> list[Check]:
    return [
        *(
            results.less(
                f"batch-rank-{panel}",
                f"ranked-exp3-{panel}",
                f"Under the {panel} model BatchRank has less regret than ranked bandits with EXP3",
            )
            for panel in MODELS
        ),
        results.less(
            "cascade-kl-ucb-cascade",
            "batch-rank-cascade",
            "Under the cascade model CascadeKL-UCB, made for it, has less regret than BatchRank",
        ),
    ]


def _uni_rank(results: Results) -> list[Check]:
    return [
        results.less(
            f"uni-rank-{panel}",
            f"{other}-{panel}",
            f"Under the {panel} model UniRank has less regret than {other}",
        )
        for panel in MODELS
        for other in ("top-rank", "batch-rank")
    ]


TOP_RANK = Trial(
    policy="top-rank",
    title="TopRank, under two click models",
    claim="One algorithm serves the position-based and the cascade model, without knowing which it is. In "
    "the experiments its regret is below that of BatchRank under both (Lattimore, Kveton, Li and "
    "Szepesvári, NeurIPS 2018, the figure of its experiments).",
    setting=SETTING,
    runs=_runs("top-rank", "batch-rank"),
    checks=_top_rank,
)
BATCH_RANK = Trial(
    policy="batch-rank",
    title="BatchRank, under two click models",
    claim="BatchRank learns under both the position-based and the cascade model, and in the long run its "
    "regret is below that of ranked bandits with EXP3. Under the cascade model CascadeKL-UCB, which is made "
    "for it, does better (Zoghi et al., ICML 2017, the figures of its experiments).",
    setting=SETTING,
    runs={
        **_runs("batch-rank"),
        **{f"ranked-exp3-{panel}": _exploring(panel) for panel in MODELS},
        "cascade-kl-ucb-cascade": named("cascade-kl-ucb", TEN, CASCADE, "cascade", microseconds=6.0),
    },
    checks=_batch_rank,
    horizon=300_000,
    replications=6,
    quick_horizon=60_000,
)
UNI_RANK = Trial(
    policy="uni-rank",
    title="UniRank, under two click models",
    claim="UniRank's regret is logarithmic in rounds under both the position-based and the cascade model. It "
    "has better regret than other generic algorithms, such as TopRank, on synthetic and real data (Gauthier, "
    "Gaudel and Fromont, ICML 2022, the figures of its experiments).",
    setting=SETTING,
    runs=_runs("uni-rank", "top-rank", "batch-rank"),
    checks=_uni_rank,
)
