"""
Conflict and the price of equality
==================================

The more user types disagree about the items, the more clicks one ranking for all of them costs. Two types
rank the same items: from the same preferences, on the left, to opposite ones, on the right.
"""

import numpy as np
from matplotlib.figure import Figure

from banditrank import Problem, equality_report, solve

means = np.array([0.9, 0.7, 0.5, 0.3, 0.1])
preferences = [[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]]
conflicts = np.linspace(0, 1, 21)


def price(conflict: float, utility: str) -> float:
    """Return the price of equality at a conflict from 0, the same preferences, to 1, opposite ones."""
    problem = Problem([0.7, 0.3], preferences, [means, (1 - conflict) * means + conflict * means[::-1]])
    return equality_report(problem, solve(problem, utility).ranking).price_of_equality


# %%
# The utilitarian ranking is the cheapest one. Nash and maximin pay more to lift the smaller type.

figure = Figure(figsize=(6.5, 3.8), dpi=150, layout="constrained")
axes = figure.add_subplot()
for utility in ("utilitarian", "nash", "maximin"):
    axes.plot(
        conflicts, [100 * price(conflict, utility) for conflict in conflicts], "o-", ms=3, label=utility
    )
axes.set_xlabel("conflict between the two user types")
axes.set_ylabel("price of equality, % of clicks")
axes.legend(frameon=False)
