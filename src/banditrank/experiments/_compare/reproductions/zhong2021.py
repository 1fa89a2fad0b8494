"""Zhong, Cheung and Tan (2021), "Thompson sampling algorithms for cascading bandits"."""

from banditrank.experiments._compare.reproductions.problems import cascade_problem
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    PolicyRun,
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import CASCADE

SIZES = ((16, 2), (32, 4))  # items and positions
ATTRACTIONS = (0.2, 0.1)  # of the optimal items, and of the others
POLICIES = ("cascade-ts", "cascade-kl-ucb")


def _key(policy: str, n_items: int, n_positions: int) -> str:
    return f"{policy}-items{n_items}-positions{n_positions}"


def _run(policy: str, n_items: int, n_positions: int) -> PolicyRun:
    best, others = ATTRACTIONS
    attraction = [others] * (n_items - n_positions) + [best] * n_positions
    problem = cascade_problem(attraction, n_positions, f"items{n_items}-positions{n_positions}")
    panel = f"L = {n_items}, K = {n_positions}"
    return catalog_run(policy, problem, CASCADE, panel, microseconds_per_round=n_items / 2)


def _checks(results: RunResults) -> list[Check]:
    ratios = [
        results.median(_key("cascade-ts", *size)) / results.median(_key("cascade-kl-ucb", *size))
        for size in SIZES
    ]
    return [
        Check(
            "Thompson sampling has less regret than CascadeKL-UCB, on both problems.",
            max(ratios) < 1.0,
            f"by factors of {min(ratios):.2f} and {max(ratios):.2f}",
        )
    ]


CASCADE_TS = RegretReproduction(
    policy="cascade-ts",
    title="CascadeTS, against CascadeKL-UCB",
    claim="In the cascade model, the regret of Thompson sampling with Beta posteriors is logarithmic in "
    "rounds. It is lower than that of UCB policies (Zhong, Cheung and Tan, JMLR 2021).",
    setting="K of L items are clicked with probability 0.2 and the others with 0.1; the sizes are ours.",
    runs={_key(policy, *size): _run(policy, *size) for size in SIZES for policy in POLICIES},
    checks=_checks,
    replications=6,
    quick_horizon=10_000,
    quick_replications=3,
)
