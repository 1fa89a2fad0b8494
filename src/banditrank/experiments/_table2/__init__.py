"""Table 2 of the paper: regret and running time of equal treatment, solved exactly and by sampling."""

from banditrank.experiments._study import Study
from banditrank.experiments._table2.analysis import analyse
from banditrank.experiments._table2.sweep import QUICK_SCALE, sweep

STUDY = Study(
    "table2",
    "Table 2: exact and sampled equal treatment",
    "Choosing among a random share of the rankings takes less time than choosing the best of all, and costs "
    "regret. On an Apple M1 a run of 600,000 rounds took 68 to 188 seconds.",
    sweep,
    analyse,
    QUICK_SCALE,
)
