"""
Regret of the default policies
==============================

Which policy learns fastest? Every policy meets the same users. Personalized and equal regret are relative to
different optima, so each treatment has a panel of its own.
"""

from banditrank import kdd2012, make_policy, plot_regret, simulate

problem = kdd2012()
policies = [
    *(make_policy(name, problem) for name in ("thompson-rank", "greedy-rank", "ucb-rank", "type-blind-ucb")),
    *(make_policy(name, problem, treatment="equal") for name in ("thompson-rank", "greedy-rank", "ucb-rank")),
]
results = [simulate(policy, problem, horizon=20_000, replications=20, seed=1) for policy in policies]

# %%
# Both axes are logarithmic, so linear regret has slope 1. A policy has the same colour in both panels, and in
# every other figure.

figure = plot_regret(results, band="quantiles")
