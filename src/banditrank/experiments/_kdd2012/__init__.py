"""Figure 3 of the paper: average regret and optimal-action rate on the problem of its Table 1."""

from banditrank.experiments._kdd2012.analysis import analyse
from banditrank.experiments._kdd2012.sweep import QUICK_SCALE, sweep
from banditrank.experiments._study import Study

STUDY = Study(
    "kdd2012",
    "Figure 3: the problem of Table 1",
    "All proposed policies find the optimal rankings over time. The rewards are drawn, but all other "
    "parameters come from the real world.",
    sweep,
    analyse,
    QUICK_SCALE,
)
