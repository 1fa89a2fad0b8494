"""
One column of a paper
=====================

``size="column"`` is 3.3 inches wide, with fonts of 7 and 8 points that stay legible at that size. Print it
without scaling.
"""

from io import BytesIO

from banditrank import kdd2012, make_policy, plot_regret, simulate

problem = kdd2012()
results = [
    simulate(make_policy(name, problem), problem, horizon=20_000, replications=20, seed=1)
    for name in ("thompson-rank", "greedy-rank", "ucb-rank")
]

# %%
# ``style`` is a Matplotlib style: a name, the path of a style file, or a mapping of settings.

figure = plot_regret(
    results,
    band="confidence",
    size="column",
    labels=["ThompsonRank", "GreedyRank", "UCBRank"],
    style={"font.family": "serif", "mathtext.fontset": "dejavuserif", "axes.grid": False},
    title="",
    x_label="round $t$",
    y_label="mean regret",
)

# %%
# A PDF file has embedded TrueType fonts, as publishers demand. In an SVG file text is drawn as paths.

figure.savefig(BytesIO(), format="pdf")  # or figure.savefig("regret.pdf")
