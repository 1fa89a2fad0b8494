"""Kveton, Szepesvári, Wen and Ashkan (2015), "Cascading bandits"."""

from dataclasses import replace

import numpy as np

from banditrank.experiments._compare.reproductions.problems import cascade_problem
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    PolicyRun,
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import CASCADE

ITEMS, POSITIONS, GAPS = (16, 32), (2, 4, 8), (0.15, 0.075)
ATTRACTION = 0.2  # of the optimal items; that of the others is a gap lower


def _key(n_items: int, n_positions: int, gap: float) -> str:
    return f"items{n_items}-positions{n_positions}-gap{gap:g}"


def _run(n_items: int, n_positions: int, gap: float) -> PolicyRun:
    attraction = [ATTRACTION - gap] * (n_items - n_positions) + [ATTRACTION] * n_positions
    problem = cascade_problem(attraction, n_positions, _key(n_items, n_positions, gap))
    run = catalog_run("cascade-kl-ucb", problem, CASCADE, f"gap {gap:g}", microseconds_per_round=n_items / 2)
    return replace(run, label=f"L = {n_items}, K = {n_positions}")


def _checks(results: RunResults) -> list[Check]:
    regret = np.array([[[results.median(_key(L, K, gap)) for gap in GAPS] for K in POSITIONS] for L in ITEMS])
    by_items = regret[1] / regret[0]
    by_positions = regret[:, 1:] / regret[:, :-1]
    by_gap = regret[:, :, 1] / regret[:, :, 0]
    return [
        _check("Regret grows with the number of items, for every K and gap", by_items, grows=True),
        _check("Regret falls with the number of positions, for every L and gap", by_positions, grows=False),
        _check("Regret grows when the gap is halved, for every L and K", by_gap, grows=True),
    ]


def _check(statement: str, ratios: "np.typing.NDArray[np.float64]", *, grows: bool) -> Check:
    holds = bool((ratios > 1).all() if grows else (ratios < 1).all())
    return Check(f"{statement}.", holds, f"by factors from {ratios.min():.2f} to {ratios.max():.2f}")


CASCADE_KL_UCB = RegretReproduction(
    policy="cascade-kl-ucb",
    title="CascadeKL-UCB, by problem size",
    claim="On problems where K of L items are clicked with probability 0.2 and the others a gap less, regret "
    "grows with L, falls with K, and grows when the gap is halved, as the bound says. It is logarithmic in "
    "rounds (Kveton, Szepesvári, Wen and Ashkan, ICML 2015, Table 1).",
    setting="The problems, gaps and the 100,000 rounds are the paper's; replications are fewer.",
    runs={
        _key(n_items, n_positions, gap): _run(n_items, n_positions, gap)
        for gap in GAPS
        for n_items in ITEMS
        for n_positions in POSITIONS
    },
    checks=_checks,
    replications=6,
    quick_horizon=10_000,
    quick_replications=3,
)
