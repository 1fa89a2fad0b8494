"""Figure 2 of the paper: all policies on a randomly drawn problem with graded rewards."""

from banditrank.experiments._study import Study
from banditrank.experiments._synthetic.analysis import analyse
from banditrank.experiments._synthetic.sweep import QUICK_SCALE, sweep

STUDY = Study(
    "synthetic",
    "Figure 2: a synthetic problem",
    "On a random problem with 3 user types, 20 items and 4 positions the regret of all proposed policies is "
    "sub-linear. How good each is depends on the parameters: under equal treatment GreedyRank is the best by "
    "the utilitarian criterion, but not by Nash's.",
    sweep,
    analyse,
    QUICK_SCALE,
)
