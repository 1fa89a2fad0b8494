"""Kveton, Wen, Ashkan and Szepesvári (2015), "Tight regret bounds …": CombUCB1."""

import itertools
import math

import numpy as np

from banditrank.experiments._compare.reproductions.problems import FOUR_ITEMS, FOUR_ITEMS_SETTING
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import PositionBased
from banditrank.model._problem import Problem

MODEL = PositionBased()


def comb_ucb1_bound(problem: Problem, rounds: int) -> float:
    """Return the theorem's regret bound for the worst gap, with L cells of which K are chosen.

    Examples
    --------
    >>> comb_ucb1_bound(Problem([1.0], [[1.0]], [[0.5, 0.4]]), 1) > 0
    True
    """
    weights = MODEL.position_weights(problem)[0]
    means, k = problem.item_means[0], problem.n_positions
    values = sorted(
        (
            float((weights * means[list(ranking)]).sum())
            for ranking in itertools.permutations(range(len(means)), k)
        ),
        reverse=True,
    )
    gap = next(values[0] - value for value in values if values[0] - value > 1e-9)
    cells = k * problem.n_items
    return k * cells * 534 / gap * math.log(rounds) + (np.pi**2 / 3 + 1) * k * cells


def _checks(results: RunResults) -> list[Check]:
    bound = comb_ucb1_bound(FOUR_ITEMS, results.horizon)
    mean = float(results.final("comb-ucb1").mean())
    return [
        results.logarithmic("comb-ucb1", "The regret of CombUCB1 grows like the logarithm of rounds"),
        Check(
            "Its mean regret is within the bound of its theorem, K L 534/Δ ln n + (π²/3 + 1) K L.",
            mean <= bound,
            f"{mean:,.0f}, and the bound is {bound:,.0f}",
        ),
    ]


COMB_UCB1 = RegretReproduction(
    policy="comb-ucb1",
    title="CombUCB1, without position knowledge",
    claim="CombUCB1's regret after n steps is of the order of K L (1/Δ) ln n, with L cells of which K are "
    "chosen; this is tight. This theorem is tested here, not a figure (Kveton, Wen, Ashkan and Szepesvári, "
    "AISTATS 2015).",
    setting=FOUR_ITEMS_SETTING,
    runs={"comb-ucb1": catalog_run("comb-ucb1", FOUR_ITEMS, MODEL)},
    checks=_checks,
    horizon=300_000,
    replications=6,
    quick_horizon=100_000,
    quick_replications=4,
)
