"""Where the paper's policies are weak: runs that turn linear, and an initial phase that does not end."""

from banditrank.experiments.lock_in.analysis import read
from banditrank.experiments.lock_in.sweep import CUT, sweep
from banditrank.experiments.study import Study

STUDY = Study(
    "lock-in",
    "Lock-in, and the initial phase",
    "All proposed policies have sub-linear regret, and the results show that they find the optimal rankings "
    "over time. The initial phase lasts no more than Σ MK/(λμ) rounds on average and adds a constant to the "
    "regret.",
    sweep,
    read,
    CUT,
)
