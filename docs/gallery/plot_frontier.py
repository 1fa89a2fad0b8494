"""
The frontier of equality
========================

One ranking for all user types loses clicks: the price of equality. The more a utility cares for the worst-off
user type, the higher is the price, and the better off is that type.
"""

from banditrank import make_problem, pareto_frontier, plot_frontier

problem = make_problem("conflict", n_user_types=5, n_items=30, n_positions=5, seed=4)
points = pareto_frontier(problem, alphas=[0.2, 0.5, 1, 2, 3, 5, 10])

# %%
# Each marker is one ranking. To the right the price is higher, and the worst-off user type clicks more.

figure = plot_frontier(points, title="five user types that disagree")
