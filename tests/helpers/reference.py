"""Independent, naive implementation of the paper's Algorithms 1 to 3.

Everything is computed from the counts in every round, in the paper's own order and with its indices; only
the problem is shared with the package. Compiled, because plain Python would take hours.
"""

from itertools import permutations

import numba
import numpy as np

from banditrank import Problem


def reference_runs(
    problem: Problem, *, greedy: bool, equal: bool, nash: bool = False, c: float, horizon: int, seeds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return final regrets and durations of the initial phase, shape (seeds,) each."""
    everything = list(permutations(range(problem.n_items), problem.n_positions))
    arguments = (
        problem.arrival_rates,
        problem.position_preferences,
        problem.item_means,
        np.array(everything),
        greedy,
        equal,
        nash,
        c,
        horizon,
    )
    runs = np.array([_run(*arguments, seed) for seed in range(seeds)])
    return runs[:, 0], runs[:, 1]


@numba.njit(cache=True)
def _run(lam, rho, mu, perms, greedy, equal, nash, c, horizon, seed):
    np.random.seed(seed)
    n, k_max = rho.shape
    m = mu.shape[1]
    shows = np.zeros((n, m, k_max))
    wins = np.zeros((n, m, k_max))
    arrived = np.zeros(n)
    true_value = np.zeros((len(perms), n))
    for p in range(len(perms)):
        for i in range(n):
            for k in range(k_max):
                true_value[p, i] += rho[i, k] * mu[i, perms[p, k]]
    true_total = np.zeros(len(perms))
    for p in range(len(perms)):
        for i in range(n):
            true_total[p] += lam[i] * (np.log(true_value[p, i]) if nash else true_value[p, i])
    regret, t0, turn = 0.0, 0, 1
    for t in range(1, horizon + 1):
        u, i = np.random.random(), 0
        while i < n - 1 and u >= lam[: i + 1].sum():
            i += 1
        shown = np.zeros(k_max, dtype=np.int64)
        if t0 == 0:
            for k in range(1, k_max + 1):
                shown[k - 1] = (t + k) % m
        elif greedy and np.random.random() < min(1.0, c / np.sqrt(t)):
            for k in range(1, k_max + 1):
                shown[k - 1] = (turn + k) % m
            turn = turn % m + 1
        else:
            shown = _best(shows, wins, arrived, perms, i, equal, nash, 0.0 if greedy else c * np.log(t))
        arrived[i] += 1
        for p in range(len(perms)):
            if (perms[p] == shown).all():
                regret += (
                    true_total.max() - true_total[p] if equal else true_value[:, i].max() - true_value[p, i]
                )
        u, look = np.random.random(), 0
        while look < k_max - 1 and u >= rho[i, : look + 1].sum():
            look += 1
        for k in range(k_max):
            shows[i, shown[k], k] += 1
        if np.random.random() < mu[i, shown[look]]:
            wins[i, shown[look], look] += 1
        if t0 == 0 and wins.min() > 0:
            t0 = t
    return regret, float(t0 if t0 > 0 else horizon)


@numba.njit(cache=True)
def _best(shows, wins, arrived, perms, i, equal, nash, bonus):
    n, m, k_max = shows.shape
    rho_hat = np.zeros((n, k_max))
    looks = np.zeros((n, m))
    mu_hat = np.zeros((n, m))
    for a in range(n):
        for j in range(m):
            ratio = wins[a, j] / shows[a, j]
            rho_hat[a] += ratio / ratio.sum() / m
        for j in range(m):
            looks[a, j] = (shows[a, j] * rho_hat[a]).sum()
            mu_hat[a, j] = wins[a, j].sum() / looks[a, j]
    if not equal:
        items = np.argsort(-(mu_hat[i] + bonus / looks[i]))
        positions = np.argsort(-rho_hat[i])
        shown = np.zeros(k_max, dtype=np.int64)
        for place in range(k_max):
            shown[positions[place]] = items[place]
        return shown
    best, best_p = -np.inf, 0
    for p in range(len(perms)):
        total = 0.0
        for a in range(n):
            value = 0.0
            for k in range(k_max):
                value += rho_hat[a, k] * mu_hat[a, perms[p, k]]
                total += bonus / looks[a, perms[p, k]]
            total += arrived[a] / arrived.sum() * (np.log(value) if nash else value)
        if total > best:
            best, best_p = total, p
    return perms[best_p].copy()
