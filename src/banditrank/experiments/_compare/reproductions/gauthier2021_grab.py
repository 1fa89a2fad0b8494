"""Gauthier, Gaudel, Fromont and Lompo (2021), "Parametric graph for unimodal ranking bandit": GRAB."""

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
        results.logarithmic("grab", "The regret of GRAB grows like the logarithm of rounds"),
        results.less("grab", "comb-ucb1", "GRAB, whose bound is smaller, has less regret than CombUCB1"),
    ]


GRAB = RegretReproduction(
    policy="grab",
    title="GRAB, without position knowledge",
    claim="GRAB's regret is logarithmic in rounds, with a bound of the order of M/Δ ln T that is smaller "
    "than CombUCB1's. Its regret is on par with the best known algorithms (Gauthier, Gaudel, Fromont and "
    "Lompo, ICML 2021, its theorem and the figures of its experiments).",
    setting=FOUR_ITEMS_SETTING,
    runs={
        "grab": catalog_run("grab", FOUR_ITEMS, MODEL, microseconds_per_round=5.0),
        "comb-ucb1": catalog_run("comb-ucb1", FOUR_ITEMS, MODEL),
        "pb-mhb": catalog_run("pb-mhb", FOUR_ITEMS, MODEL, microseconds_per_round=5.0),
    },
    checks=_checks,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
