"""Komiyama, Honda and Takeda (2017), "Position-based multiple-play bandit problem …": PMED."""

from banditrank.experiments._compare.reproductions.problems import TWO_POSITIONS
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
        results.logarithmic("pmed", "The regret of PMED grows like the logarithm of rounds"),
        results.less("pmed", "comb-ucb1", "PMED, which uses the model, has less regret than CombUCB1"),
    ]


PMED = RegretReproduction(
    policy="pmed",
    title="PMED, without position knowledge",
    claim="PMED explores as little as any consistent policy can without knowing the examination "
    "probabilities: its regret is logarithmic in rounds. Its bound is proved to be asymptotically optimal "
    "(Komiyama, Honda and Takeda, NIPS 2017, its theorem).",
    setting="Five items with θ = (.95, .8, .65, .5, .35) in two positions with κ = (1, .6), of the size of "
    "the paper's synthetic experiment, and fewer rounds.",
    runs={
        "pmed": catalog_run("pmed", TWO_POSITIONS, MODEL, microseconds_per_round=10.0),
        "comb-ucb1": catalog_run("comb-ucb1", TWO_POSITIONS, MODEL),
    },
    checks=_checks,
)
