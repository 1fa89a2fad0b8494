"""Compare policies on a problem whose user types disagree, and plot every replication."""

from pathlib import Path

from banditrank import GreedyRank, UCBRank, make_problem, save_plot, simulate

problem = make_problem("conflict", n_user_types=2, n_items=6, n_positions=2, seed=1)
results = [
    simulate(policy, problem, horizon=20_000, replications=8, seed=7)
    for policy in (
        UCBRank(coefficient=0.5),
        GreedyRank(coefficient=0.5),
        UCBRank(coefficient=0.5, treatment="equal", utility="nash"),
    )
]
for result in results:
    print(f"{result.label:32} median regret {result.median[-1]:8.1f}, worst {result.final_regret.max():8.1f}")

Path("output").mkdir(exist_ok=True)
save_plot(results, "output/compare.png")
