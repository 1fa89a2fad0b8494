"""Policies that know nothing of positions: PB-MHB, GRAB, CombUCB1 and PMED."""

import itertools
import math

import numpy as np

from banditrank.experiments.compare.reproductions.trial import Results, Trial, named
from banditrank.experiments.compare.reproductions.worlds import FOUR, PAIR, TEN
from banditrank.experiments.study import Check
from banditrank.model.click_models import PositionBased
from banditrank.model.problem import Problem

MODEL = PositionBased()
SMALL = (
    "Four items with θ = (.7, .5, .3, .1) in three positions with κ = (1, .6, .3): a small world of our own, "
    "so that the logarithm is reached in fewer rounds than the paper's."
)


def _pb_mhb(results: Results) -> list[Check]:
    return [
        results.less("pb-mhb", "pbm-pie", "PB-MHB has less regret than PBM-PIE, which is told κ"),
        results.less("pb-mhb", "top-rank", "PB-MHB has less regret than TopRank, which is told the order"),
        results.less("pb-mhb", "comb-ucb1", "PB-MHB has less regret than CombUCB1, which is told nothing"),
    ]


def _grab(results: Results) -> list[Check]:
    return [
        results.logarithmic("grab", "The regret of GRAB grows like the logarithm of rounds"),
        results.less("grab", "comb-ucb1", "GRAB, whose bound is smaller, has less regret than CombUCB1"),
    ]


def _pmed(results: Results) -> list[Check]:
    return [
        results.logarithmic("pmed", "The regret of PMED grows like the logarithm of rounds"),
        results.less("pmed", "comb-ucb1", "PMED, which uses the model, has less regret than CombUCB1"),
    ]


def _comb_ucb1(results: Results) -> list[Check]:
    bound = comb_ucb1_bound(FOUR, results.horizon)
    mean = float(results.final("comb-ucb1").mean())
    return [
        results.logarithmic("comb-ucb1", "The regret of CombUCB1 grows like the logarithm of rounds"),
        Check(
            "Its mean regret is within the bound of its theorem, K L 534/Δ ln n + (π²/3 + 1) K L.",
            mean <= bound,
            f"{mean:,.0f}, and the bound is {bound:,.0f}",
        ),
    ]


def comb_ucb1_bound(problem: Problem, rounds: int) -> float:
    """Return the theorem's bound for the worst gap: L cells, of which K are chosen.

    Examples
    --------
    >>> comb_ucb1_bound(Problem([1.0], [[1.0]], [[0.5, 0.4]]), 1) > 0
    True
    """
    weights = MODEL.position_weights(problem)[0]
    means, k = problem.item_means[0], problem.n_positions
    values = sorted(
        (
            float((weights * means[list(shown)]).sum())
            for shown in itertools.permutations(range(len(means)), k)
        ),
        reverse=True,
    )
    gap = next(values[0] - value for value in values if values[0] - value > 1e-9)
    cells = k * problem.n_items
    return k * cells * 534 / gap * math.log(rounds) + (np.pi**2 / 3 + 1) * k * cells


PB_MHB = Trial(
    policy="pb-mhb",
    title="PB-MHB, where nothing is known",
    claim="PB-MHB does not need to know how probably a position is looked at. With less prior knowledge it "
    "has better results than the state of the art, simulated and on real data (Gauthier, Gaudel and Fromont, "
    "IDA 2021, the figures of its experiments).",
    setting="Ten items in five positions, the paper's size, with click rates of our own (.9 to .05, κ from 1 "
    "to 0.4); one step of Metropolis and Hastings a round, and fewer rounds.",
    runs={
        "pb-mhb": named("pb-mhb", TEN, MODEL, microseconds=8.0),
        "pbm-pie": named("pbm-pie", TEN, MODEL),
        "top-rank": named("top-rank", TEN, MODEL),
        "comb-ucb1": named("comb-ucb1", TEN, MODEL),
    },
    checks=_pb_mhb,
)
GRAB = Trial(
    policy="grab",
    title="GRAB, where nothing is known",
    claim="GRAB's regret is logarithmic in rounds, with a bound of the order of M/Δ ln T that is smaller "
    "than CombUCB1's. Its regret is on par with the best known algorithms (Gauthier, Gaudel, Fromont and "
    "Lompo, ICML 2021, its theorem and the figures of its experiments).",
    setting=SMALL,
    runs={
        "grab": named("grab", FOUR, MODEL, microseconds=5.0),
        "comb-ucb1": named("comb-ucb1", FOUR, MODEL),
        "pb-mhb": named("pb-mhb", FOUR, MODEL, microseconds=5.0),
    },
    checks=_grab,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
COMB_UCB1 = Trial(
    policy="comb-ucb1",
    title="CombUCB1, where nothing is known",
    claim="CombUCB1's regret after n steps is of the order of K L (1/Δ) ln n, with L cells of which K are "
    "chosen; this is tight. It is this theorem, and no figure, that is put to the test here (Kveton, Wen, "
    "Ashkan and Szepesvári, AISTATS 2015).",
    setting=SMALL,
    runs={"comb-ucb1": named("comb-ucb1", FOUR, MODEL)},
    checks=_comb_ucb1,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
PMED = Trial(
    policy="pmed",
    title="PMED, where nothing is known",
    claim="PMED explores as little as any good policy can that does not know how probably a position is "
    "looked at: its regret is logarithmic in rounds. Its bound is proved to be optimal in the limit "
    "(Komiyama, Honda and Takeda, NIPS 2017, its theorem).",
    setting="Five items with θ = (.95, .8, .65, .5, .35) in two positions with κ = (1, .6), of the size of "
    "the paper's synthetic experiment, and fewer rounds.",
    runs={
        "pmed": named("pmed", PAIR, MODEL, microseconds=10.0),
        "comb-ucb1": named("comb-ucb1", PAIR, MODEL),
    },
    checks=_pmed,
)
