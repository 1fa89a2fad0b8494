"""Rank one request at a time on counts of your own, and read what was learned."""

import numpy as np

from banditrank import Counts, GreedyRank, estimate, kdd2012

truth = kdd2012()  # stands in for real users
rng = np.random.default_rng(1)
policy, counts = GreedyRank(coefficient=2.0), Counts.empty_for(truth)
scratch = policy.new_scratch()  # remembers which items to explore next

for _ in range(5_000):
    user_type = int(rng.choice(2, p=truth.arrival_rates))
    ranking = policy.rank(counts, user_type, rng=rng, scratch=scratch)
    look = rng.choice(2, p=truth.position_preferences[user_type])
    clicked = rng.random() < truth.item_means[user_type, ranking[look]]
    counts.record(user_type, ranking, rewards=np.eye(2)[look] * clicked)

learned = estimate(counts)
print("where users look, learned:", learned.position_preferences.round(2).tolist())
print("where users look, truth:  ", truth.position_preferences.round(2).tolist())
