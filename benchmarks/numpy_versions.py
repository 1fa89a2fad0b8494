"""UCBRank in idiomatic NumPy: estimates are recomputed from the counts in every round."""

from itertools import permutations

import numpy as np

from banditrank import Problem


class NumpyUCB:
    """Personalized or equal (utilitarian, by trying all rankings) UCBRank on the single-look problem."""

    def __init__(self, problem: Problem, coefficient: float, seed: int, *, equal: bool) -> None:
        self.lam, self.rho, self.mu = problem.arrival_rates, problem.position_preferences, problem.item_means
        self.n, self.m, self.k = problem.n_user_types, problem.n_items, problem.n_positions
        self.c, self.rng, self.equal = coefficient, np.random.default_rng(seed), equal
        self.displays = np.zeros((self.n, self.m, self.k))
        self.rewards = np.zeros((self.n, self.m, self.k))
        self.arrivals = np.zeros(self.n)
        self.t, self.initial, self.regret = 0, True, 0.0
        self.best = (np.sort(self.mu)[:, ::-1][:, : self.k] * np.sort(self.rho)[:, ::-1]).sum(axis=1)
        if equal:
            self.rankings = np.array(list(permutations(range(self.m), self.k)))

    def play(self, rounds: int) -> None:
        """Play rounds."""
        for _ in range(rounds):
            self.t += 1
            user_type = self.rng.choice(self.n, p=self.lam)
            if self.initial:
                ranking = (self.t + 1 + np.arange(self.k)) % self.m
            else:
                ranking = self.choose_equal() if self.equal else self.choose(user_type)
            look = self.rng.choice(self.k, p=self.rho[user_type])
            clicked = self.rng.random() < self.mu[user_type, ranking[look]]
            self.regret += self.best[user_type] - self.rho[user_type] @ self.mu[user_type, ranking]
            self.displays[user_type, ranking, np.arange(self.k)] += 1
            self.rewards[user_type, ranking[look], look] += clicked
            self.arrivals[user_type] += 1
            if self.initial:
                self.initial = bool(self.rewards.min() == 0)

    def estimate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ρ̂ (N, K) by Algorithm 1, N (N, M) and μ̂ (N, M)."""
        ratios = self.rewards / self.displays
        rho = (ratios / ratios.sum(axis=2, keepdims=True)).mean(axis=1)
        looks = (self.displays * rho[:, None, :]).sum(axis=2)
        return rho, looks, self.rewards.sum(axis=2) / looks

    def choose(self, user_type: int) -> np.ndarray:
        """Return the personalized ranking."""
        rho, looks, means = self.estimate()
        index = means[user_type] + self.c * np.log(self.t) / looks[user_type]
        ranking = np.empty(self.k, dtype=int)
        ranking[np.argsort(-rho[user_type])] = np.argsort(-index)[: self.k]
        return ranking

    def choose_equal(self) -> np.ndarray:
        """Return the equal ranking."""
        rho, looks, means = self.estimate()
        bonus = (self.c * np.log(self.t) / looks).sum(axis=0)
        weights = self.arrivals / self.arrivals.sum()
        values = (rho[:, None, :] * means[:, self.rankings]).sum(axis=2)
        totals = weights @ values + bonus[self.rankings].sum(axis=1)
        return self.rankings[totals.argmax()]
