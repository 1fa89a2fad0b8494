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
    true_total = np.zeros(len(perms))
    best_value, best_total = np.zeros(n), -np.inf
    for p in range(len(perms)):
        for i in range(n):
            for k in range(k_max):
                true_value[p, i] += rho[i, k] * mu[i, perms[p, k]]
            true_total[p] += lam[i] * (np.log(true_value[p, i]) if nash else true_value[p, i])
            best_value[i] = max(best_value[i], true_value[p, i])
        best_total = max(best_total, true_total[p])
    shown = np.zeros(k_max, dtype=np.int64)
    regret, t0, turn, empty_cells = 0.0, 0, 1, n * m * k_max
    for t in range(1, horizon + 1):
        i = _draw(lam)
        if t0 == 0:
            for k in range(1, k_max + 1):
                shown[k - 1] = (t + k) % m
        elif greedy and np.random.random() < min(1.0, c / np.sqrt(t)):
            for k in range(1, k_max + 1):
                shown[k - 1] = (turn + k) % m
            turn = turn % m + 1
        else:
            _best(shows, wins, arrived, perms, i, equal, nash, 0.0 if greedy else c * np.log(t), shown)
        arrived[i] += 1
        for p in range(len(perms)):
            same = True
            for k in range(k_max):
                same = same and perms[p, k] == shown[k]
            if same:
                regret += best_total - true_total[p] if equal else best_value[i] - true_value[p, i]
        look = _draw(rho[i])
        for k in range(k_max):
            shows[i, shown[k], k] += 1
        if np.random.random() < mu[i, shown[look]]:
            empty_cells -= wins[i, shown[look], look] == 0
            wins[i, shown[look], look] += 1
        if t0 == 0 and empty_cells == 0:
            t0 = t
    return regret, float(t0 if t0 > 0 else horizon)


@numba.njit(cache=True)
def _draw(probabilities):
    """Return an index drawn with the given probabilities."""
    u, index = np.random.random() - probabilities[0], 0
    while index < len(probabilities) - 1 and u >= 0:
        index += 1
        u -= probabilities[index]
    return index


@numba.njit(cache=True)
def _best(shows, wins, arrived, perms, i, equal, nash, bonus, shown):
    n, m, k_max = shows.shape
    rho_hat = np.zeros((n, k_max))
    looks = np.zeros((n, m))
    mu_hat = np.zeros((n, m))
    rounds = 0.0
    for a in range(n):
        rounds += arrived[a]
        for j in range(m):
            total = 0.0
            for k in range(k_max):
                total += wins[a, j, k] / shows[a, j, k]
            for k in range(k_max):
                rho_hat[a, k] += wins[a, j, k] / shows[a, j, k] / total / m
        for j in range(m):
            total = 0.0
            for k in range(k_max):
                looks[a, j] += shows[a, j, k] * rho_hat[a, k]
                total += wins[a, j, k]
            mu_hat[a, j] = total / looks[a, j]
    if not equal:
        taken_items, taken_positions = np.zeros(m), np.zeros(k_max)
        for _ in range(k_max):
            item, position = -1, -1
            for j in range(m):
                index = mu_hat[i, j] + bonus / looks[i, j]
                if not taken_items[j] and (item < 0 or index > mu_hat[i, item] + bonus / looks[i, item]):
                    item = j
            for k in range(k_max):
                if not taken_positions[k] and (position < 0 or rho_hat[i, k] > rho_hat[i, position]):
                    position = k
            taken_items[item], taken_positions[position], shown[position] = 1, 1, item
        return
    best, best_p = -np.inf, 0
    for p in range(len(perms)):
        total = 0.0
        for a in range(n):
            value = 0.0
            for k in range(k_max):
                value += rho_hat[a, k] * mu_hat[a, perms[p, k]]
                total += bonus / looks[a, perms[p, k]]
            total += arrived[a] / rounds * (np.log(value) if nash else value)
        if total > best:
            best, best_p = total, p
    for k in range(k_max):
        shown[k] = perms[best_p, k]
