"""
Every replication, quantiles, or a confidence band
==================================================

The mean says what to expect on average, the median what happens in most replications. They differ when a few
replications lock in to a wrong ranking, as those of the type-blind policy do.
"""

from matplotlib.figure import Figure

from banditrank import draw_regret, kdd2012, make_policy, simulate

problem = kdd2012()
results = [
    simulate(make_policy(name, problem), problem, horizon=20_000, replications=20, seed=1)
    for name in ("thompson-rank", "type-blind-ucb")
]

# %%
# ``draw_regret`` draws on axes of your own. The band of the mean is a 95% confidence band by Student's t.

figure = Figure(figsize=(11, 3.8), dpi=150, layout="constrained")
left, middle, right = figure.subplots(1, 3, sharey=True)
labels = ["ThompsonRank", "type-blind UCB"]
draw_regret(left, results, band="replications", labels=labels)
draw_regret(middle, results, band="quantiles", labels=labels, y_label="")
draw_regret(right, results, band="confidence", labels=labels, y_label="")
