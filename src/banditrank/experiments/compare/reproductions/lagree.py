"""Lagrée, Vernade and Cappé (2016), "Multiple-play bandits in the position-based model": three policies."""

import math

import numpy as np

from banditrank.experiments.compare.reproductions.trial import Results, Trial, named
from banditrank.experiments.compare.reproductions.worlds import ATTRACTION, EXAMINATION, FIVE
from banditrank.experiments.study import Check
from banditrank.model.click_models import PositionBased
from banditrank.policies.baselines.components.kl_ucb import bernoulli_kl

MODEL = PositionBased()
CLOSE = 2.0  # times the lower bound: then it is followed, at a horizon where lower terms still count
SETTING = (
    "The world is that of the paper's simulations, five items with θ = (.45, .35, .25, .15, .05) in three "
    "positions with κ = (.9, .6, .3), which all know; rounds and replications are fewer."
)
RUNS = {
    "pbm-ucb": named("pbm-ucb", FIVE, MODEL, microseconds=1.0),
    "pbm-ts": named("pbm-ts", FIVE, MODEL, microseconds=5.0),
    "pbm-pie": named("pbm-pie", FIVE, MODEL, microseconds=2.0),
}
PAPER = "Lagrée, Vernade and Cappé, NIPS 2016"


def lower_bound() -> float:
    """Return the paper's lower bound on regret over ln T, for its own world.

    Each item that does not belong on the page must be tried somewhere: where trying it costs least for what
    it tells.

    Examples
    --------
    >>> round(lower_bound(), 2)
    5.59
    """
    looks, means = np.array(EXAMINATION), np.array(ATTRACTION)
    n_positions = len(looks)
    best = float((looks * means[:n_positions]).sum())
    total = 0.0
    for item in range(n_positions, len(means)):
        prices = []
        for place in range(n_positions):
            shown = np.insert(means[: n_positions - 1], place, means[item])
            lost = best - float((looks * shown).sum())
            told = bernoulli_kl(looks[place] * means[item], looks[place] * means[n_positions - 1])
            prices.append(lost / told)
        total += min(prices)
    return float(total)


def _ucb(results: Results) -> list[Check]:
    return [
        results.logarithmic("pbm-ucb", "The regret of PBM-UCB grows like the logarithm of rounds"),
        results.less("pbm-ts", "pbm-ucb", "PBM-UCB has more regret than PBM-TS"),
        results.less("pbm-pie", "pbm-ucb", "PBM-UCB has more regret than PBM-PIE"),
    ]


def _ts(results: Results) -> list[Check]:
    return [
        results.less("pbm-ts", "pbm-ucb", "PBM-TS has less regret than PBM-UCB"),
        results.logarithmic("pbm-ts", "The regret of PBM-TS grows like the logarithm of rounds"),
    ]


def _pie(results: Results) -> list[Check]:
    bound = lower_bound() * math.log(results.horizon)
    return [
        results.less("pbm-pie", "pbm-ucb", "PBM-PIE has less regret than PBM-UCB"),
        Check(
            f"PBM-PIE's median regret is at most {CLOSE:g} times the lower bound, which it reaches in the "
            "limit.",
            results.median("pbm-pie") <= CLOSE * bound,
            f"{results.median('pbm-pie'):,.0f}, and the bound is {lower_bound():.2f} ln T = {bound:,.0f}",
        ),
    ]


PBM_UCB = Trial(
    policy="pbm-ucb",
    title="PBM-UCB, where examination is known",
    claim="PBM-UCB's regret is logarithmic in rounds. In simulations it is beaten by PBM-TS and PBM-PIE, "
    f"which use what clicks tell more tightly ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs=RUNS,
    checks=_ucb,
)
PBM_TS = Trial(
    policy="pbm-ts",
    title="PBM-TS, where examination is known",
    claim="Thompson sampling, with draws from the exact posterior by rejection, does very well in practice. "
    f"Its regret is below that of PBM-UCB ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs={name: RUNS[name] for name in ("pbm-ts", "pbm-ucb")},
    checks=_ts,
)
PBM_PIE = Trial(
    policy="pbm-pie",
    title="PBM-PIE, where examination is known",
    claim="PBM-PIE explores in the last position only, and its regret reaches the lower bound in the limit. "
    f"In simulations it is below that of PBM-UCB ({PAPER}, the figure of its synthetic experiment).",
    setting=SETTING,
    runs={name: RUNS[name] for name in ("pbm-pie", "pbm-ucb")},
    checks=_pie,
)
