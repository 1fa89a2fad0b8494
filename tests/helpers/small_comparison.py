"""Small suites and reproductions, to test running, storing and reporting."""

from dataclasses import replace

import pytest

from banditrank.experiments._compare import compare, suites
from banditrank.experiments._compare.reproductions import catalog, li2019
from banditrank.experiments._compare.reproductions.lagree2016 import PBM_UCB

POLICIES = ("pbm-ucb", "top-rank", "top-rank-ordered", "comb-ucb1", "random")
"""Policies of every kind of position knowledge that compile quickly."""


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Make every suite and the reproduction of PBM-UCB small, and leave out the others."""
    small = {
        name: replace(suite, horizon=900, quick_horizon=600, replications=4, quick_replications=3)
        for name, suite in suites.SUITES.items()
    }
    for name, suite in small.items():
        patch.setitem(suites.SUITES, name, suite)
    patch.setattr(li2019, "QUICK_ROUNDS", 300)
    patch.setattr(li2019, "QUICK_REPLICATIONS", 2)
    small_pbm_ucb = replace(PBM_UCB, horizon=900, quick_horizon=600, replications=4, quick_replications=3)
    found = {"pbm-ucb": small_pbm_ucb.study(), "bubble-rank": catalog.REPRODUCTIONS["bubble-rank"]}
    patch.setattr(compare, "REPRODUCTIONS", found)
