"""Chen, Zhao and Li (2022), "Simultaneously learning stochastic and adversarial bandits …": FTRL-PBM."""

from banditrank.experiments._compare.reproductions.problems import FOUR_ITEMS, position_based_problem
from banditrank.experiments._compare.reproductions.regret_reproduction import (
    MAX_SQUARE_ROOT_GROWTH,
    RegretReproduction,
    RunResults,
    catalog_run,
)
from banditrank.experiments._study import Check
from banditrank.model._click_models import PositionBased
from banditrank.model._timeline import Timeline

MODEL = PositionBased()
HORIZON = 300_000
FIRST_PHASE, PHASE_GROWTH = 20, 1.6  # rounds, and the ratio of the lengths of two phases


def constrained_adversary(rounds: int = HORIZON) -> Timeline:
    """Return a problem that always has the same best ranking, and whose level jumps in ever longer phases.

    Examples
    --------
    >>> constrained_adversary(100).starts
    (1, 21, 53)
    """
    levels = [
        position_based_problem((1.0, 0.5), attraction, "adversary")
        for attraction in ((0.2, 0.1, 0.0, 0.0), (1.0, 0.9, 0.8, 0.8))
    ]
    starts, length = [1], float(FIRST_PHASE)
    while starts[-1] + length < rounds:
        starts.append(int(starts[-1] + length))
        length *= PHASE_GROWTH
    return Timeline([levels[phase % 2] for phase in range(len(starts))], starts)


def _checks(results: RunResults) -> list[Check]:
    ratio = results.growth_ratio("ftrl-pbm-adversarial")
    return [
        results.logarithmic(
            "ftrl-pbm-stochastic",
            "On a fixed problem the regret of FTRL-PBM grows like the logarithm of rounds",
        ),
        Check(
            "On the adversarial problem it grows like a square root at most: over the last tenfold increase "
            f"of rounds by at most {MAX_SQUARE_ROOT_GROWTH:g} times its growth over the one before.",
            ratio <= MAX_SQUARE_ROOT_GROWTH,
            f"{ratio:.2f} times",
        ),
        results.less(
            "ftrl-pbm-adversarial",
            "cts-adversarial",
            "On the adversarial problem FTRL-PBM has less regret than CTS, which averages rewards",
        ),
    ]


FTRL_PBM = RegretReproduction(
    policy="ftrl-pbm",
    title="FTRL-PBM, in two environments",
    claim="FTRL-PBM has regret of the order of ln T in the stochastic and m √(n T) in the adversarial "
    "environment, without knowing which it is in. It is competitive with policies that are made for one "
    "of them (Chen, Zhao and Li, AAAI 2022, its theorems and the figures of its experiments).",
    setting="The fixed problem has four items with θ = (.7, .5, .3, .1) in three positions with κ = (1, .6, "
    ".3); the adversarial one has four items in two positions, whose θ jump between (.2, .1, 0, 0) and "
    "(1, .9, .8, .8) in phases that grow by 1.6, so that the best ranking stays the same: both are our own.",
    runs={
        "ftrl-pbm-stochastic": catalog_run("ftrl-pbm", FOUR_ITEMS, MODEL, "stochastic", 3.0),
        **{
            f"{name}-adversarial": catalog_run(name, constrained_adversary(), MODEL, "adversarial", 3.0)
            for name in ("ftrl-pbm", "cts")
        },
    },
    checks=_checks,
    horizon=HORIZON,
    replications=8,
    quick_horizon=100_000,
    quick_replications=4,
)
