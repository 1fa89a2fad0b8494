"""
Regret of two policies
======================

Simulate two policies on the problem of the paper's Table 1, and compare their regret. A faint line is a
replication.
"""

from banditrank import kdd2012, plot_regret, simulate

problem = kdd2012()
results = [
    simulate(policy, problem, horizon=20_000, replications=5, seed=7)
    for policy in ("thompson-rank", "ucb-rank")
]
figure = plot_regret(results)
