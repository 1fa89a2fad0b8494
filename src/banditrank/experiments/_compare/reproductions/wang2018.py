"""Wang and Chen (2018), "Thompson sampling for combinatorial semi-bandits": CTS."""

from banditrank.experiments._compare.reproductions.problems import FOUR_ITEMS, FOUR_ITEMS_SETTING
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import PositionBased

MODEL = PositionBased()


def _checks(results: RunResults) -> list[Check]:
    return [
        results.logarithmic("cts", "The regret of CTS grows like the logarithm of rounds"),
        results.less("cts", "cucb", "CTS has less regret than CUCB"),
    ]


CTS = RegretReproduction(
    policy="cts",
    title="CTS, without position knowledge",
    claim="CTS has regret of the order of ln T with an exact oracle. In experiments it has less regret than "
    "CUCB (Wang and Chen, ICML 2018, its theorem and the figures of its experiments).",
    setting=FOUR_ITEMS_SETTING,
    runs={
        "cts": catalog_run("cts", FOUR_ITEMS, MODEL),
        "cucb": catalog_run("cucb", FOUR_ITEMS, MODEL),
    },
    checks=_checks,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
