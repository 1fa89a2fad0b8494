"""Chen, Wang, Yuan and Wang (2016), "Combinatorial multi-armed bandit …": CUCB."""

from banditrank.experiments._compare.reproductions.problems import FOUR_ITEMS, FOUR_ITEMS_SETTING
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import PositionBased


def _checks(results: RunResults) -> list[Check]:
    return [results.logarithmic("cucb", "The regret of CUCB grows like the logarithm of rounds")]


CUCB = RegretReproduction(
    policy="cucb",
    title="CUCB, without position knowledge",
    claim="CUCB has regret of the order of ln n against the best that its oracle can find, for any reward "
    "that is monotone and smooth in the means of the arms. This theorem is tested here with cells as arms "
    "and an exact oracle, not a figure (Chen, Wang, Yuan and Wang, JMLR 2016).",
    setting=FOUR_ITEMS_SETTING,
    runs={"cucb": catalog_run("cucb", FOUR_ITEMS, PositionBased())},
    checks=_checks,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
