"""Lagrée, Vernade and Cappé (2016), "Multiple-play bandits in the position-based model"."""

import math

import numpy as np

from banditrank.experiments._compare.reproductions.problems import ATTRACTION, EXAMINATION, FIVE_ITEMS
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import PositionBased
from banditrank.policies.baselines._components.kl_ucb import bernoulli_kl

MODEL = PositionBased()
MAX_BOUND_RATIO = 2.0  # of regret to the lower bound, at a horizon where lower-order terms still matter
SETTING = (
    "The problem is that of the paper's simulations, five items with θ = (.45, .35, .25, .15, .05) in three "
    "positions with κ = (.9, .6, .3), which all policies know; rounds and replications are fewer."
)
RUNS = {
    "pbm-ucb": catalog_run("pbm-ucb", FIVE_ITEMS, MODEL, microseconds_per_round=1.0),
    "pbm-ts": catalog_run("pbm-ts", FIVE_ITEMS, MODEL, microseconds_per_round=5.0),
    "pbm-pie": catalog_run("pbm-pie", FIVE_ITEMS, MODEL, microseconds_per_round=2.0),
}
PAPER = "Lagrée, Vernade and Cappé, NIPS 2016"


def lower_bound() -> float:
    """Return the paper's asymptotic lower bound on regret divided by ln T, for `FIVE_ITEMS`.

    Each suboptimal item must be explored, in the position where regret per unit of information is lowest.

    Examples
    --------
    >>> round(lower_bound(), 2)
    5.59
    """
    examination, means = np.array(EXAMINATION), np.array(ATTRACTION)
    n_positions = len(examination)
    best = float((examination * means[:n_positions]).sum())
    total = 0.0
    for item in range(n_positions, len(means)):
        costs = []
        for position in range(n_positions):
            explored = np.insert(means[: n_positions - 1], position, means[item])
            regret = best - float((examination * explored).sum())
            seen = examination[position]
            information = bernoulli_kl(seen * means[item], seen * means[n_positions - 1])
            costs.append(regret / information)
        total += min(costs)
    return float(total)


def _pbm_ucb_checks(results: RunResults) -> list[Check]:
    return [
        results.logarithmic("pbm-ucb", "The regret of PBM-UCB grows like the logarithm of rounds"),
        results.less("pbm-ts", "pbm-ucb", "PBM-UCB has more regret than PBM-TS"),
        results.less("pbm-pie", "pbm-ucb", "PBM-UCB has more regret than PBM-PIE"),
    ]


def _pbm_ts_checks(results: RunResults) -> list[Check]:
    return [
        results.less("pbm-ts", "pbm-ucb", "PBM-TS has less regret than PBM-UCB"),
        results.logarithmic("pbm-ts", "The regret of PBM-TS grows like the logarithm of rounds"),
    ]


def _pbm_pie_checks(results: RunResults) -> list[Check]:
    bound = lower_bound() * math.log(results.horizon)
    return [
        results.less("pbm-pie", "pbm-ucb", "PBM-PIE has less regret than PBM-UCB"),
        Check(
            f"PBM-PIE's median regret is at most {MAX_BOUND_RATIO:g} times the lower bound, which it reaches "
            "asymptotically.",
            results.median("pbm-pie") <= MAX_BOUND_RATIO * bound,
            f"{results.median('pbm-pie'):,.0f}, and the bound is {lower_bound():.2f} ln T = {bound:,.0f}",
        ),
    ]


PBM_UCB = RegretReproduction(
    policy="pbm-ucb",
    title="PBM-UCB, with known examination",
    claim="PBM-UCB's regret is logarithmic in rounds. In simulations PBM-TS and PBM-PIE have less regret, "
    f"because they use clicks more efficiently ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs=RUNS,
    checks=_pbm_ucb_checks,
)
PBM_TS = RegretReproduction(
    policy="pbm-ts",
    title="PBM-TS, with known examination",
    claim="Thompson sampling, with exact posterior samples by rejection, performs very well in practice. "
    f"Its regret is below that of PBM-UCB ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs={name: RUNS[name] for name in ("pbm-ts", "pbm-ucb")},
    checks=_pbm_ts_checks,
)
PBM_PIE = RegretReproduction(
    policy="pbm-pie",
    title="PBM-PIE, with known examination",
    claim="PBM-PIE explores in the last position only, and its regret is asymptotically optimal. "
    f"In simulations it is below that of PBM-UCB ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs={name: RUNS[name] for name in ("pbm-pie", "pbm-ucb")},
    checks=_pbm_pie_checks,
)
