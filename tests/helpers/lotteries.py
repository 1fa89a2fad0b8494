"""Independent values of lotteries: by general convex and linear solvers, and by bounds."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

from banditrank import MAXIMIN, Lottery, Utility
from banditrank.solvers._lottery.guarantees import Guarantee, as_rows
from banditrank.testing._solver_problems import SolverProblem

Floats = NDArray[np.float64]


def guarantee_matrix(
    problem: SolverProblem, guarantees: list[Guarantee], *, is_personalized: bool
) -> tuple[Floats, Floats]:
    """Return coefficients of the guarantees in X, shape (C, L, M, K) for L lotteries, and their levels."""
    instance = problem.instance()
    n, m, k = instance.n_user_types, instance.n_items, instance.n_positions
    names = [f"item-{j + 1}" for j in range(m)], [f"type-{i + 1}" for i in range(n)]
    rows = as_rows(guarantees, instance, *names).rows
    n_lotteries = n if is_personalized else 1
    looks = instance.weights[:, None] * instance.preferences  # (N, K)
    looks = looks if is_personalized else looks.sum(axis=0, keepdims=True)
    matrix = np.zeros((rows.levels.size, n_lotteries, m, k))
    for j in range(m):
        for row in rows.item_rows[rows.item_starts[j] : rows.item_starts[j + 1]]:
            matrix[row, :, j] = looks
    levels = rows.levels.copy()
    for c, i in enumerate(rows.user_types, start=levels.size - rows.user_types.size):
        values = np.outer(instance.means[i], instance.preferences[i])
        matrix[c, i if is_personalized else 0] = values
        best = np.sort(instance.means[i])[::-1][:k] @ np.sort(instance.preferences[i])[::-1]
        levels[c] = rows.shares[c - levels.size + rows.user_types.size] * best
    return matrix, levels


def value_matrix(problem: SolverProblem, *, is_personalized: bool) -> Floats:
    """Return coefficients of the types' values in X, shape (N, L, M, K)."""
    n = problem.n_user_types
    values = np.einsum("ij,ik->ijk", problem.item_means, problem.position_preferences)
    if not is_personalized:
        return values[:, None]
    matrix = np.zeros((n, *values.shape))
    matrix[np.arange(n), np.arange(n)] = values
    return matrix


def best_linear_value(
    problem: SolverProblem, utility: Utility, guarantees: list[Guarantee], *, is_personalized: bool = False
) -> float | None:
    """Return the value of the best lottery for a linear utility or maximin, by HiGHS; None if infeasible."""
    n, m, k = problem.n_user_types, problem.n_items, problem.n_positions
    values = value_matrix(problem, is_personalized=is_personalized)
    n_lotteries = values.shape[1]
    size = n_lotteries * m * k
    matrix, levels = guarantee_matrix(problem, guarantees, is_personalized=is_personalized)
    grid = np.arange(size).reshape(n_lotteries, m, k)
    shown, filled = np.zeros((n_lotteries * m, size + 1)), np.zeros((n_lotteries * k, size + 1))
    for row, cells in enumerate(grid.reshape(-1, k)):
        shown[row, cells] = 1.0
    for row, cells in enumerate(grid.transpose(0, 2, 1).reshape(-1, m)):
        filled[row, cells] = 1.0
    kept = np.hstack([-matrix.reshape(len(levels), size), np.zeros((len(levels), 1))])
    above = np.hstack([-values.reshape(n, -1), np.ones((n, 1))])  # t ≤ u_i
    bonus = np.zeros(m) if problem.bonuses is None else problem.bonuses
    profit = np.append(np.broadcast_to(bonus[:, None], (n_lotteries, m, k)).ravel(), 0.0)
    if utility is MAXIMIN:
        profit[-1] = 1.0
    else:
        profit[:-1] += problem.arrival_rates @ values.reshape(n, -1)
    upper = np.concatenate([np.ones(len(shown)), -levels, np.zeros(n)])
    result = linprog(
        -profit, np.vstack([shown, kept, above]), upper, filled, np.ones(len(filled)), method="highs"
    )
    return -float(result.fun) if result.status == 0 else None


def best_convex_value(
    problem: SolverProblem,
    utility: Utility,
    guarantees: list[Guarantee],
    concave: Any,
    *,
    is_personalized: bool = False,
) -> float:
    """Return the value of the best lottery by CVXPY with Clarabel; ``concave`` is f as CVXPY writes it."""
    import cvxpy as cp  # heavy, and for the campaign only

    m, k = problem.n_items, problem.n_positions
    values = value_matrix(problem, is_personalized=is_personalized)
    matrix, levels = guarantee_matrix(problem, guarantees, is_personalized=is_personalized)
    cells = [cp.Variable((m, k), nonneg=True) for _ in range(values.shape[1])]
    limits = [cp.sum(x, axis=1) <= 1 for x in cells] + [cp.sum(x, axis=0) == 1 for x in cells]
    limits += [
        sum(cp.sum(cp.multiply(row[a], x)) for a, x in enumerate(cells)) >= level
        for row, level in zip(matrix, levels, strict=True)
    ]
    u = cp.hstack([sum(cp.sum(cp.multiply(row[a], x)) for a, x in enumerate(cells)) for row in values])
    total = cp.min(u) if utility is MAXIMIN else cp.sum(cp.multiply(problem.arrival_rates, concave(u)))
    if problem.bonuses is not None:
        total += cp.sum(problem.bonuses @ cells[0])
    program = cp.Problem(cp.Maximize(total), limits)
    with warnings.catch_warnings():  # that it cannot reach this accuracy: 1e-7 is what is compared
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        accuracy = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
        program.solve(solver=cp.CLARABEL, max_iter=200, **accuracy)
    return float(program.value)


def bound_by_tangent(
    lottery: Lottery, problem: SolverProblem, utility: Utility, guarantees: list[Guarantee], slopes: Floats
) -> float:
    """Return an upper bound on every lottery from a lottery's values and prices, without its solver.

    Parameters
    ----------
    lottery
        The lottery whose values are the tangent point, and whose prices are those of the guarantees.
    problem, utility, guarantees
        What was solved.
    slopes
        λ_i f'(u_i); for maximin any weights of the types that sum to 1.
    """
    is_personalized = lottery.treatment == "personalized"
    matrix, levels = guarantee_matrix(problem, guarantees, is_personalized=is_personalized)
    prices = np.array([report.price for report in lottery.guarantees])
    values = value_matrix(problem, is_personalized=is_personalized)
    scores = np.einsum("i,iajk->ajk", slopes, values) + np.einsum("c,cajk->ajk", prices, matrix)
    if problem.bonuses is not None:
        scores += problem.bonuses[None, :, None]
    best = sum(float(score[linear_sum_assignment(score, maximize=True)].sum()) for score in scores)
    bound = best - float(prices @ levels)
    if utility is not MAXIMIN:
        u = lottery.user_type_values
        bound += utility.collective(problem.arrival_rates, u) - float(slopes @ u)
    return bound
