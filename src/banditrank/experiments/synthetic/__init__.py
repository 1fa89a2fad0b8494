"""Figure 2 of the paper: all policies on a world drawn at random, with graded rewards."""

from banditrank.experiments.study import Study
from banditrank.experiments.synthetic.analysis import read
from banditrank.experiments.synthetic.sweep import CUT, sweep

STUDY = Study(
    "synthetic",
    "Figure 2: a synthetic world",
    "On a random world with 3 user types, 20 items and 4 positions the regret of all proposed policies is "
    "sub-linear. How good each is depends on the parameters: under equal treatment GreedyRank is the best by "
    "the utilitarian criterion, but not by Nash's.",
    sweep,
    read,
    CUT,
)
