"""
What a position is worth
========================

How often do users look at each position? The estimates come from the clicks of one replication, with 95%
confidence intervals; crosses are the true values.
"""

import numpy as np
from matplotlib.figure import Figure

from banditrank import confidence_intervals, estimate, kdd2012, simulate

problem = kdd2012()
result = simulate("thompson-rank", problem, horizon=5_000, replications=1, seed=1, keep_counts=True)
(counts,) = result.counts
estimates = estimate(counts, method="likelihood")
intervals = confidence_intervals(counts)

# %%
# In this problem most users look at the second position, male users even more than female ones.

figure = Figure(figsize=(6, 3.6), dpi=150, layout="constrained")
axes = figure.add_subplot()
positions = np.arange(problem.n_positions)
for row, user_type in enumerate(problem.user_types):
    x = positions + (row - 0.5) * 0.12
    preferences = estimates.position_preferences[row]
    low, high = intervals.position_preferences[row].T
    axes.errorbar(
        x, preferences, yerr=(preferences - low, high - preferences), fmt="o", capsize=4, label=user_type
    )
    label = "true value" if row == 0 else None
    axes.plot(x, problem.position_preferences[row], "x", color="black", markersize=8, label=label)
axes.set_xticks(positions, [f"position {position + 1}" for position in positions])
axes.set_xlim(-0.5, problem.n_positions - 0.5)
axes.set_ylim(0, 1)
axes.set_ylabel("share of looks")
axes.legend(frameon=False)
