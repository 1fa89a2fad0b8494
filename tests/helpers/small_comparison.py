"""Suites and reproductions that take hardly any rounds, to test what runs, keeps and shows them."""

from dataclasses import replace

import pytest

from banditrank.experiments.compare import compare, suites
from banditrank.experiments.compare.reproductions import catalog, safety
from banditrank.experiments.compare.reproductions.lagree import PBM_UCB

POLICIES = ("pbm-ucb", "top-rank", "top-rank-ordered", "comb-ucb1", "random")
"""Of every kind of knowledge, and quickly compiled."""


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Make every suite and the reproduction of PBM-UCB small, and leave out the others."""
    small = {
        name: replace(suite, horizon=900, quick_horizon=600, replications=4, quick_replications=3)
        for name, suite in suites.SUITES.items()
    }
    for name, suite in small.items():
        patch.setitem(suites.SUITES, name, suite)
    patch.setattr(safety, "QUICK_ROUNDS", 300)
    patch.setattr(safety, "QUICK_REPLICATIONS", 2)
    trial = replace(PBM_UCB, horizon=900, quick_horizon=600, replications=4, quick_replications=3)
    found = {"pbm-ucb": trial.study(), "bubble-rank": catalog.REPRODUCTIONS["bubble-rank"]}
    patch.setattr(compare, "REPRODUCTIONS", found)
