"""
Who is shown what
=================

How often a policy has shown each item at each position to each user type, in 20,000 rounds. The best ranking
of a type prevails; the rest is exploration, mostly of items that are nearly as good.
"""

from matplotlib.figure import Figure

from banditrank import kdd2012, simulate

problem = kdd2012()
result = simulate("thompson-rank", problem, horizon=20_000, replications=1, seed=1, keep_counts=True)
(counts,) = result.counts

# %%
# Counts are displays by user type, item and position: dividing by the arrivals of a type gives shares.

figure = Figure(figsize=(7.5, 3.6), dpi=150, layout="constrained")
for row, axes in enumerate(figure.subplots(1, problem.n_user_types, sharey=True)):
    shares = counts.displays[row] / counts.arrivals[row]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (item, position), share in zip(
        ((i, k) for i in range(problem.n_items) for k in range(problem.n_positions)),
        shares.ravel(),
        strict=True,
    ):
        axes.text(
            position,
            item,
            f"{share:.1%}",
            ha="center",
            va="center",
            color="white" if share > 0.5 else "black",
        )
    axes.set_xticks(range(problem.n_positions), [f"position {k + 1}" for k in range(problem.n_positions)])
    axes.set_yticks(range(problem.n_items), problem.items)
    axes.set_title(problem.user_types[row], loc="left")
