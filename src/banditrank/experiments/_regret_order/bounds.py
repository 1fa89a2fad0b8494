"""Regret bounds of the four theorems, with constants computed from a problem.

The theorems leave O(1) open; it is replaced by the regret of the initial phase in their proofs,
Σ_i Σ_j MK / (λ_i μ_ij). Other open constants:

C > 1
    The constant with ε_t ≥ C t^(−1/2). Theorem 1 sets ε_t = t^(−1/2), for which no C exists and the bound
    is infinite; its proof sets ε_t = N t^(−1/2), so C = N.
C_ρ
    ‖T_ij‖₁ = C_ρ N_ij: displays per examination. At most 1 / min ρ.
min_j Δ_ij
    Never defined; the proof needs it to be at most the gap between a type's best and second-best value.
f(1)
    1 for the utilitarian criterion.
"""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from banditrank.model._problem import Problem

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]


def theorem_1(problem: Problem, rounds: Rounds) -> Floats:
    """Return the bound on personalized GreedyRank's regret, shape (C,)."""
    n, m, k = problem.n_user_types, problem.n_items, problem.n_positions
    t = rounds.astype(np.float64)
    scale = (
        8 * displays_per_examination(problem) * m * k / (1 - 1 / n) / problem.item_means.min(axis=1)
    )  # (N,)
    order = np.sqrt(problem.arrival_rates[:, None] * t) * np.log(t)  # (N, C)
    return np.asarray(2 * n * np.sqrt(t) + scale @ order + initial_phase(problem))


def theorem_2(problem: Problem, rounds: Rounds) -> Floats:
    """Return the bound on personalized UCBRank's regret, shape (C,)."""
    t = rounds.astype(np.float64)
    m, k = problem.n_items, problem.n_positions
    scale = 2 * displays_per_examination(problem) * m * k / personalized_gaps(problem)  # (N,)
    return np.asarray(
        scale @ np.sqrt(problem.arrival_rates[:, None] * t * np.log(t)) + initial_phase(problem)
    )


def theorem_3(problem: Problem, rounds: Rounds) -> Floats:
    """Return the bound on equal GreedyRank's regret by the utilitarian criterion, L_f = 1, solved exactly."""
    n, m, k = problem.n_user_types, problem.n_items, problem.n_positions
    t = rounds.astype(np.float64)
    scale = 8 * displays_per_examination(problem) * n * m * k / (1 - 1 / n) / problem.item_means.min()
    return np.asarray(2 * n * np.sqrt(t) + scale * np.sqrt(t) * np.log(t) + initial_phase(problem))


def theorem_4(problem: Problem, rounds: Rounds) -> Floats:
    """Return the bound on equal UCBRank's regret by the utilitarian criterion, with its proof's constant."""
    n, m, k = problem.n_user_types, problem.n_items, problem.n_positions
    t = rounds.astype(np.float64)
    scale = 2 * displays_per_examination(problem) * n**2 * m * k / equal_gap(problem)
    return np.asarray(scale * np.sqrt(t * np.log(t)) + initial_phase(problem) + n * np.log(t))


def initial_phase(problem: Problem) -> float:
    """Return the proofs' bound on the rounds of the initial phase: Σ_i Σ_j MK / (λ_i μ_ij)."""
    chances = problem.arrival_rates[:, None] * problem.item_means
    return float((problem.n_items * problem.n_positions / chances).sum())


def displays_per_examination(problem: Problem) -> float:
    """Return the maximum of C_ρ."""
    return float(1 / problem.position_preferences.min())


def personalized_gaps(problem: Problem) -> Floats:
    """Return the gap between the best and second-best value of each type, shape (N,)."""
    return np.array([_gap(values) for values in _all_values(problem).T])


def equal_gap(problem: Problem) -> float:
    """Return Δ_Γ by the utilitarian criterion."""
    return _gap(_all_values(problem) @ problem.arrival_rates)


def _gap(values: Floats) -> float:
    best = values.max()
    return float(best - values[values < best - 1e-12 * best].max())


def _all_values(problem: Problem) -> Floats:
    """Return the value of each ranking to each type, shape (rankings, N)."""
    rankings = np.array(list(permutations(range(problem.n_items), problem.n_positions)))
    means = problem.item_means[:, rankings]  # (N, R, K)
    return np.asarray((means * problem.position_preferences[:, None, :]).sum(axis=2).T)
