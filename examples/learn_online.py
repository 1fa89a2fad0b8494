"""Learn one round at a time, and print the estimates."""

import numpy as np

from banditrank import GreedyRank, estimate, kdd2012

problem = kdd2012()  # provides the simulated users
rng = np.random.default_rng(1)
learner = GreedyRank(coefficient=2.0).start(problem, rng=2)

for _ in range(5_000):
    user_type = int(rng.choice(2, p=problem.arrival_rates))
    ranking = learner.rank(user_type)
    position = int(rng.choice(2, p=problem.position_preferences[user_type]))
    is_clicked = rng.random() < problem.item_means[user_type, ranking[position]]
    learner.update(user_type, ranking, position if is_clicked else None)

estimates = estimate(learner.counts)
print("position preferences, estimated:", estimates.position_preferences.round(2).tolist())
print("position preferences, true:     ", problem.position_preferences.round(2).tolist())
