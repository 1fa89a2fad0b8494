"""Theorems 1 to 4: growth of regret with the number of rounds and the size of the problem."""

from banditrank.experiments._regret_order.analysis import analyse
from banditrank.experiments._regret_order.sweep import QUICK_SCALE, sweep
from banditrank.experiments._study import Study

STUDY = Study(
    "regret-order",
    "Theorems 1 to 4: the order of regret",
    "GreedyRank's expected regret grows no faster than √t ln t, and UCBRank's no faster than √(t ln t), with "
    "constants that the theorems state. These bounds grow in proportion to the number of items and of "
    "positions, and with the number of user types at most as its square.",
    sweep,
    analyse,
    QUICK_SCALE,
)
