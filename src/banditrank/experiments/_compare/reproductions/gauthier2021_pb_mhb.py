"""Gauthier, Gaudel and Fromont (2021), "Bandit algorithm for both unknown best position …": PB-MHB."""

from banditrank.experiments._compare.reproductions.problems import TEN_ITEMS
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
        results.less("pb-mhb", "pbm-pie", "PB-MHB has less regret than PBM-PIE, which knows κ"),
        results.less("pb-mhb", "top-rank", "PB-MHB has less regret than TopRank, which knows the order"),
        results.less("pb-mhb", "comb-ucb1", "PB-MHB has less regret than CombUCB1, which knows nothing"),
    ]


PB_MHB = RegretReproduction(
    policy="pb-mhb",
    title="PB-MHB, without position knowledge",
    claim="PB-MHB does not need to know the examination probabilities. With less prior knowledge it has "
    "better results than the state of the art, in simulations and on real data (Gauthier, Gaudel and "
    "Fromont, IDA 2021, the figures of its experiments).",
    setting="Ten items in five positions, the paper's size, with click rates of our own (.9 to .05, κ from 1 "
    "to 0.4); one Metropolis-Hastings step per round, and fewer rounds.",
    runs={
        "pb-mhb": catalog_run("pb-mhb", TEN_ITEMS, MODEL, microseconds_per_round=8.0),
        "pbm-pie": catalog_run("pbm-pie", TEN_ITEMS, MODEL),
        "top-rank": catalog_run("top-rank", TEN_ITEMS, MODEL),
        "comb-ucb1": catalog_run("comb-ucb1", TEN_ITEMS, MODEL),
    },
    checks=_checks,
)
