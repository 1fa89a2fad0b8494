"""Weak points of the paper's policies: runs with linear regret, and long initial phases."""

from banditrank.experiments._lock_in.analysis import analyse
from banditrank.experiments._lock_in.sweep import QUICK_SCALE, sweep
from banditrank.experiments._study import Study

STUDY = Study(
    "lock-in",
    "Lock-in, and the initial phase",
    "All proposed policies have sub-linear regret, and the results show that they find the optimal rankings "
    "over time. The initial phase lasts no more than Σ MK/(λμ) rounds on average and adds a constant to the "
    "regret.",
    sweep,
    analyse,
    QUICK_SCALE,
)
