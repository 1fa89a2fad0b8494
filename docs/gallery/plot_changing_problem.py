"""
A changing problem
==================

The items change places twice. A policy that remembers all rounds trusts old clicks; with a window it forgets
them, which costs regret while nothing changes and saves it after a change.
"""

from banditrank import kdd2012, make_policy, make_timeline, plot_regret, simulate

HORIZON = 15_000
timeline = make_timeline(kdd2012(), "item-jumps:2", horizon=HORIZON, seed=1)
policies = [make_policy("thompson-rank", timeline, memory=memory) for memory in (None, "window:2000")]
results = [simulate(policy, timeline, horizon=HORIZON, replications=10, seed=1) for policy in policies]

# %%
# Linear axes show when regret is paid. Vertical lines are the changes.

figure = plot_regret(
    results,
    band="quantiles",
    x_scale="linear",
    y_scale="linear",
    labels=["all rounds", "the last 2,000 rounds"],
    title="two changes of the items' means",
)
(axes,) = figure.axes
for start in timeline.starts[1:]:
    axes.axvline(start, color="gray", linewidth=0.8, linestyle=":")
