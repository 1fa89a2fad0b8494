"""Restrictions to allowed cells: exact and certified, against enumeration."""

import numpy as np
import pytest
from helpers.searches import CONCAVE, search
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from banditrank import MAXIMIN, NASH, UTILITARIAN, InvalidInputError, Utility, make_problem, solve
from banditrank.model._generators import FAMILIES
from banditrank.solvers._allowed import as_allowed_cells
from banditrank.solvers._solve import DEFAULT_GAP
from banditrank.testing._certificates import find_certificate_error
from banditrank.testing._solver_problems import (
    SolverProblem,
    generate_solver_problem,
    random_allowed_cells,
)
from banditrank.utilities._utility import ramp, sigmoid

SQUARES = Utility.from_function(lambda u: min(1.0, u * u), shape="non-concave", lipschitz=2.0, name="squares")
UTILITIES = [UTILITARIAN, *CONCAVE, MAXIMIN, sigmoid(), ramp(), SQUARES]
SIZES = [(3, 6, 3), (2, 4, 4), (2, 7, 2), (4, 5, 3), (1, 5, 2)]


def check_solution(
    problem: SolverProblem, utility: Utility, allowed: NDArray[np.bool_], **options: object
) -> None:
    """Check that the solution is allowed, the best, and certified."""
    solution = search(problem, utility, allowed=allowed, bonuses=problem.bonuses, **options)
    assert allowed[np.arange(problem.n_positions), solution.ranking].all()
    best = problem.best(utility, allowed)
    assert solution.value == best or solution.value == pytest.approx(best, rel=1e-9)
    assert solution.is_certified
    assert find_certificate_error(solution, problem, utility, best=best, target_gap=DEFAULT_GAP) is None


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
@settings(max_examples=40, deadline=None)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    size=st.sampled_from(SIZES),
    seed=st.integers(0, 10**6),
    bonuses=st.booleans(),
)
def test_searches_find_the_best_allowed_ranking(
    utility: Utility, family: str, size: tuple[int, int, int], seed: int, *, bonuses: bool
) -> None:
    problem = generate_solver_problem(family, size, seed, bonuses=bonuses)
    check_solution(problem, utility, random_allowed_cells(problem, np.random.default_rng(seed)))


@pytest.mark.parametrize("utility", [NASH, MAXIMIN, sigmoid()], ids=str)
def test_large_problems_with_a_pinned_item_and_half_of_the_items(utility: Utility) -> None:
    problem = generate_solver_problem("conflict", (4, 14, 4), 3, bonuses=True)
    allowed = np.tile(np.arange(14) % 2 == 0, (4, 1))
    allowed[2] = np.arange(14) == 5
    check_solution(problem, utility, allowed)


@pytest.mark.parametrize("utility", UTILITIES, ids=str)
def test_types_without_an_allowed_item(utility: Utility) -> None:
    """A type may have value 0 in all allowed rankings, or in some."""
    means = np.array([[0.9, 0.0, 0.0, 0.0], [0.3, 0.5, 0.7, 0.2]])
    problem = SolverProblem(np.array([0.5, 0.5]), np.array([[0.6, 0.4], [0.3, 0.7]]), means)
    everywhere, never, needed = np.ones((2, 4), dtype=bool), np.ones((2, 4), dtype=bool), np.eye(2, 4) == 1
    never[:, 0] = False
    needed[1, 0] = True  # item 0 is needed at position 0, and can be shown there only
    for allowed in (everywhere, never, needed):
        check_solution(problem, utility, allowed)


def test_a_restriction_that_allows_everything_changes_nothing() -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=9, n_positions=3, seed=4)
    for utility in ("utilitarian", "nash", "maximin", "sigmoid:20:0.3"):
        plain = solve(problem, utility)
        assert np.array_equal(solve(problem, utility, allowed=np.ones((3, 9), bool)).ranking, plain.ranking)


def test_items_are_numbered_as_in_the_problem() -> None:
    problem = make_problem("random", n_user_types=2, n_items=30, n_positions=3, seed=1)
    allowed = np.zeros((3, 30), dtype=bool)
    allowed[:, [4, 17, 23, 29]] = True
    solution = solve(problem, "nash", allowed=allowed)
    assert set(solution.ranking.tolist()) < {4, 17, 23, 29}
    assert solution.solver == "enumeration"  # of 24 rankings


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sampling_draws_allowed_rankings(share: float) -> None:
    problem = generate_solver_problem("random", (2, 6, 3), 1, bonuses=False)
    allowed = random_allowed_cells(problem, np.random.default_rng(5))
    seen = set()
    for seed in range(40):
        ranking = solve(problem, "nash", allowed=allowed, solver="sampling", share=share, seed=seed).ranking
        assert allowed[np.arange(3), ranking].all()
        seen.add(tuple(ranking.tolist()))
    assert (len(seen) > 1) == (share < 1.0)


def test_warm_starts_must_be_allowed() -> None:
    problem = make_problem("random", n_user_types=2, n_items=12, n_positions=2, seed=1)
    allowed = np.ones((2, 12), dtype=bool)
    allowed[1, 7] = False
    best = solve(problem, "nash", allowed=allowed, solver="branch-and-bound").value
    warm = solve(problem, "nash", allowed=allowed, solver="branch-and-bound", warm_start=[7, 3])
    assert warm.value == pytest.approx(best)
    with pytest.raises(InvalidInputError, match="warm_start must hold allowed items only, got 'item 7 at"):
        solve(problem, "nash", allowed=allowed, warm_start=[3, 7])
    allowed[:, 5] = False
    with pytest.raises(InvalidInputError, match="got 'item 5 at position 0'"):
        solve(problem, "nash", allowed=allowed, warm_start=[5, 3])


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (
            np.ones((3, 2), bool),
            r"allowed must be a boolean array of shape \(2, 3\), got 'bool of shape \(3, 2\)'",
        ),
        (np.ones((2, 3)), "got 'float64 of shape"),
        ([0, 1], "got 'int64 of shape"),
        (
            np.zeros((2, 3), bool),
            "must have an item of its own for each position, got 'only 0 for positions 0'",
        ),
        ([[True, True, True], [False] * 3], "got 'only 0 for positions 1'"),
        ([[False, True, False]] * 2, "got 'only 1 for positions 0, 1'"),
    ],
)
def test_invalid_restrictions(allowed: object, message: str) -> None:
    problem = make_problem("random", n_user_types=2, n_items=3, n_positions=2, seed=1)
    with pytest.raises(InvalidInputError, match=message):
        solve(problem, allowed=allowed)


@given(data=st.data(), n_items=st.integers(1, 5), n_positions=st.integers(1, 4))
def test_cells_are_those_of_all_allowed_rankings(data: st.DataObject, n_items: int, n_positions: int) -> None:
    n_positions = min(n_positions, n_items)
    flags = data.draw(st.lists(st.booleans(), min_size=n_items * n_positions, max_size=n_items * n_positions))
    allowed = np.array(flags).reshape(n_positions, n_items)
    blank = SolverProblem(np.ones(1), np.ones((1, n_positions)), np.ones((1, n_items)))
    rankings = [ranking for ranking in blank.rankings() if allowed[np.arange(n_positions), ranking].all()]
    if not rankings:
        with pytest.raises(InvalidInputError, match="must have an item of its own for each position"):
            as_allowed_cells(allowed, n_items=n_items, n_positions=n_positions)
        return
    expected = np.zeros_like(allowed)
    for ranking in rankings:
        expected[np.arange(n_positions), ranking] = True
    found = as_allowed_cells(allowed, n_items=n_items, n_positions=n_positions)
    cells = np.zeros_like(allowed)
    cells[:, found.items] = True if found.cells is None else found.cells
    assert np.array_equal(cells, expected)
    assert allowed[np.arange(n_positions), found.items[found.ranking]].all()
    assert np.unique(found.ranking).size == n_positions
