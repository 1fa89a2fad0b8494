"""Figure 3 of the paper: average regret and optimal-action rate on the world of its Table 1."""

from banditrank.experiments.kdd2012.analysis import read
from banditrank.experiments.kdd2012.sweep import CUT, sweep
from banditrank.experiments.study import Study

STUDY = Study(
    "kdd2012",
    "Figure 3: the world of Table 1",
    "All proposed policies find the optimal rankings over time. The rewards are drawn, but all other "
    "parameters come from the real world.",
    sweep,
    read,
    CUT,
)
