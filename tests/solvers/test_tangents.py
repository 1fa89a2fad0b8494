"""Bounds of tangents, against every ranking."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import NASH, Problem, alpha_fair, make_problem
from banditrank.solvers._assignment import best_assignment
from banditrank.solvers._instance import as_instance, score_cells
from banditrank.solvers._tangents import Tangent, bound_at, total_at
from banditrank.utilities._utility import Utility

Floats = NDArray[np.float64]

SCALED = [NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5)]


def tangent_at(
    problem: Problem, utility: Utility, point: Floats, *, is_scalable: bool
) -> tuple[Tangent, Floats]:
    """Return the tangent at a point, and its slopes."""
    alpha = 1.0 if utility is NASH else utility.parameter
    slopes = problem.arrival_rates * point**-alpha
    height = float(problem.arrival_rates @ utility.evaluate(point))
    return Tangent(height, float(slopes @ point), is_scalable), slopes


@pytest.mark.parametrize("is_scalable", [False, True], ids=["tangent", "scaled"])
@pytest.mark.parametrize("utility", SCALED, ids=str)
@given(seed=st.integers(0, 10**6))
def test_the_bound_at_the_best_total_is_above_every_ranking(
    utility: Utility,
    is_scalable: bool,  # noqa: FBT001
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    problem = make_problem("conflict", n_user_types=3, n_items=5, n_positions=2, seed=seed)
    point = rng.uniform(0.05, 1.0, size=3)  # slopes may be taken anywhere, not only where a ranking is
    tangent, slopes = tangent_at(problem, utility, point, is_scalable=is_scalable)
    scores = np.zeros((2, 5))
    score_cells(as_instance(problem), slopes, 5, scores)
    bound = bound_at(utility.compiled(), tangent, best_assignment(scores)[1], 3)
    for ranking in permutations(range(5), 2):
        values = (problem.position_preferences * problem.item_means[:, list(ranking)]).sum(axis=1)
        worth = utility.collective(problem.arrival_rates, values)
        assert worth <= bound + 1e-12 * abs(worth)


@pytest.mark.parametrize("utility", SCALED, ids=str)
@given(seed=st.integers(0, 10**6), share=st.floats(0.1, 10.0))
def test_the_bound_is_the_best_over_all_multiples_of_the_slopes(
    utility: Utility, seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    problem = make_problem("conflict", n_user_types=3, n_items=5, n_positions=2, seed=seed)
    point = rng.uniform(0.05, 1.0, size=3)
    scaled, slopes = tangent_at(problem, utility, point, is_scalable=True)
    plain, multiple = tangent_at(problem, utility, share * point, is_scalable=False)
    factor = float(multiple[0] / slopes[0])  # a tangent point further out has slopes smaller throughout
    assert multiple == pytest.approx(factor * slopes)
    total = rng.uniform(0.1, 2.0) * scaled.lift
    best = bound_at(utility.compiled(), scaled, total, 3)
    assert best <= bound_at(utility.compiled(), plain, factor * total, 3) + 1e-9 * abs(best)


@pytest.mark.parametrize("is_scalable", [False, True], ids=["tangent", "scaled"])
@pytest.mark.parametrize("utility", SCALED, ids=str)
@given(seed=st.integers(0, 10**6), share=st.floats(0.1, 10.0))
@example(seed=0, share=1.25)  # with α = 5 the bound is 0, but for rounding
def test_bounds_and_totals_are_inverse(
    utility: Utility,
    is_scalable: bool,  # noqa: FBT001
    seed: int,
    share: float,
) -> None:
    rng = np.random.default_rng(seed)
    problem = make_problem("conflict", n_user_types=3, n_items=5, n_positions=2, seed=seed)
    tangent, _ = tangent_at(problem, utility, rng.uniform(0.05, 1.0, size=3), is_scalable=is_scalable)
    total, compiled = share * tangent.lift, utility.compiled()
    bound = bound_at(compiled, tangent, total, 3)
    size = abs(tangent.height) + abs(tangent.lift)
    assert total_at(compiled, tangent, bound, 3) == pytest.approx(total, rel=1e-9, abs=1e-12 * size)
    more = bound + 0.01 * abs(bound)
    assert total_at(compiled, tangent, more, 3) >= total
    assert bound_at(compiled, tangent, total_at(compiled, tangent, more, 3), 3) == pytest.approx(
        more, rel=1e-9, abs=1e-12 * size
    )


def test_without_an_incumbent_nothing_is_fixed() -> None:
    for is_scalable in (False, True):
        assert total_at(NASH.compiled(), Tangent(-1.0, 1.0, is_scalable), -np.inf, 3) == -np.inf
    root = alpha_fair(0.5).compiled()
    assert total_at(root, Tangent(2.0, 1.0, True), 0.0, 3) == 0.0
