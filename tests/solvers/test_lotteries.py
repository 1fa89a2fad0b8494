"""Lotteries against general linear and convex solvers, independent bounds, and the best fixed ranking."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.figure_checks import check_figure
from helpers.lotteries import best_convex_value, best_linear_value, bound_by_tangent
from hypothesis import given, settings
from hypothesis import strategies as st

from banditrank import (
    MAXIMIN,
    NASH,
    UTILITARIAN,
    InvalidInputError,
    KeptShare,
    LeastExposure,
    Lottery,
    Problem,
    UnknownNameError,
    UnsolvableError,
    Utility,
    alpha_fair,
    kdd2012,
    make_problem,
    plot_lottery,
    save_lottery_plot,
    sigmoid,
    solve,
    solve_lottery,
)
from banditrank._figures import Size
from banditrank.model._generators import FAMILIES
from banditrank.solvers._lottery.guarantees import MAX_ROWS, Guarantee
from banditrank.solvers._solution import gap_unit
from banditrank.testing._solver_problems import SOLVER_FAMILIES, SolverProblem, generate_solver_problem

ROOT = Utility.from_function(
    lambda u: math.sqrt(u + 0.01),
    derivative=lambda u: 0.5 / math.sqrt(u + 0.01),
    shape="concave",
    name="root",
)
SMOOTH = (NASH, alpha_fair(0.5), alpha_fair(2), alpha_fair(5), ROOT)
ALL = (UTILITARIAN, MAXIMIN, *SMOOTH)
SIZES = ((2, 5, 2), (3, 20, 4), (3, 5, 1), (4, 6, 6), (5, 12, 2))
GAP = 1e-9


def some_guarantees(problem: SolverProblem, kind: int) -> list[Guarantee]:
    """Return guarantees of a kind that can be kept."""
    m = problem.n_items
    each = LeastExposure(0.3 / m)
    few = LeastExposure(0.5 / m, items=[0, m - 1])
    group = LeastExposure(0.4, items=range(m // 2), is_group=True)
    return [[], [each], [few, group], [KeptShare(0.3 / problem.n_user_types)], [each, group, KeptShare(0.1)]][
        kind
    ]


def slopes_at(lottery: Lottery, problem: SolverProblem, utility: Utility) -> np.ndarray:
    u, rates = lottery.user_type_values, problem.arrival_rates
    if utility is UTILITARIAN:
        return rates
    if utility is ROOT:
        return rates * 0.5 / np.sqrt(u + 0.01)
    return rates / u ** (1.0 if utility is NASH else utility.parameter)


def check_lottery(
    lottery: Lottery, problem: SolverProblem, utility: Utility, guarantees: list[Guarantee]
) -> None:
    """Check all that a lottery says of itself."""
    odds = np.atleast_2d(lottery.probabilities)
    assert odds.min() >= 0.0
    assert odds.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert lottery.is_certified, (lottery, lottery.gap)
    for ranking in lottery.rankings:
        assert len(set(ranking)) == problem.n_positions
    matrix = lottery.matrix.reshape(-1, problem.n_items, problem.n_positions)
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert matrix.sum(axis=2).max() <= 1.0 + 1e-12
    values = np.einsum(
        "ij,ik,ijk->i",
        problem.item_means,
        problem.position_preferences,
        np.broadcast_to(matrix, (problem.n_user_types, *matrix.shape[1:])),
    )
    assert lottery.user_type_values == pytest.approx(values, rel=1e-12, abs=1e-12)
    for report in lottery.guarantees:
        assert report.reached >= report.level * (1.0 - 1e-9)
        assert report.price >= 0.0
    unit = float(gap_unit(utility.compiled(), lottery.value))
    if utility is not MAXIMIN:
        bound = bound_by_tangent(lottery, problem, utility, guarantees, slopes_at(lottery, problem, utility))
        assert lottery.value <= bound + 1e-12 * unit
        assert bound <= lottery.value + 1e-6 * unit
    if lottery.treatment == "equal":
        binding = sum(report.reached <= report.level * (1 + 1e-9) for report in lottery.guarantees)
        extra = 0 if problem.bonuses is None else 1
        assert len(lottery.rankings) <= problem.n_user_types + binding + extra
        if not guarantees:
            best = solve(problem, utility, bonuses=problem.bonuses)
            assert lottery.upper_bound >= best.value - 1e-12 * unit
            assert lottery.value >= best.value - (GAP + 1e-12) * unit


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("kind", range(5))
def test_lotteries_are_those_of_a_general_solver(family: str, kind: int) -> None:
    size = SIZES[(kind + sorted(FAMILIES).index(family)) % len(SIZES)]
    problem = generate_solver_problem(family, size, kind, bonuses=False)
    guarantees = some_guarantees(problem, kind)
    for utility in (UTILITARIAN, MAXIMIN):
        for treatment in ("equal", "personalized"):
            lottery = solve_lottery(
                problem, utility, guarantees=guarantees, treatment=treatment, target_gap=GAP
            )
            best = best_linear_value(
                problem, utility, guarantees, is_personalized=treatment == "personalized"
            )
            assert lottery.value == pytest.approx(best, rel=1e-8, abs=1e-9)
            check_lottery(lottery, problem, utility, guarantees)


@pytest.mark.parametrize("family", SOLVER_FAMILIES)
@pytest.mark.parametrize("utility", SMOOTH, ids=str)
def test_every_lottery_is_certified_by_an_independent_bound(family: str, utility: Utility) -> None:
    for kind in range(5):
        problem = generate_solver_problem(family, SIZES[kind], kind, bonuses=kind == 0)
        guarantees = some_guarantees(problem, kind)
        lottery = solve_lottery(
            problem, utility, guarantees=guarantees, bonuses=problem.bonuses, target_gap=GAP
        )
        check_lottery(lottery, problem, utility, guarantees)


def written_for_cvxpy(utility: Utility) -> Any:
    import cvxpy as cp

    if utility is ROOT:
        return lambda u: cp.sqrt(u + 0.01)
    if utility is NASH:
        return cp.log
    if utility in (UTILITARIAN, MAXIMIN):
        return lambda u: u
    alpha = utility.parameter
    return lambda u: cp.power(u, 1 - alpha) / (1 - alpha)


@pytest.mark.campaign
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("utility", ALL, ids=str)
@pytest.mark.parametrize("treatment", ["equal", "personalized"])
def test_values_agree_with_a_convex_solver(family: str, utility: Utility, treatment: Any) -> None:
    for kind in range(5):
        problem = generate_solver_problem(
            family, SIZES[(kind + 1) % 5], 10 + kind, bonuses=kind < 3 and treatment == "equal"
        )
        guarantees = some_guarantees(problem, kind)
        lottery = solve_lottery(
            problem,
            utility,
            guarantees=guarantees,
            treatment=treatment,
            bonuses=problem.bonuses,
            target_gap=GAP,
        )
        best = best_convex_value(
            problem,
            utility,
            guarantees,
            written_for_cvxpy(utility),
            is_personalized=treatment == "personalized",
        )
        assert lottery.value == pytest.approx(best, rel=1e-7, abs=1e-7)
        check_lottery(lottery, problem, utility, guarantees)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_relabelling_items_and_types_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = make_problem("conflict", n_user_types=3, n_items=9, n_positions=2, seed=seed)
    items, user_types = rng.permutation(9), rng.permutation(3)
    relabelled = Problem(
        problem.arrival_rates[user_types],
        problem.position_preferences[user_types],
        problem.item_means[user_types][:, items],
    )
    for utility in (NASH, MAXIMIN):
        lottery = solve_lottery(problem, utility, guarantees=[LeastExposure(0.05)])
        other = solve_lottery(relabelled, utility, guarantees=[LeastExposure(0.05)])
        assert other.value == pytest.approx(lottery.value, rel=1e-9, abs=1e-9)
        values = lottery.user_type_values[user_types]
        if utility is NASH:  # strictly concave: the values are unique
            assert other.user_type_values == pytest.approx(values, abs=1e-4)


def test_a_lottery_is_better_than_a_fixed_ranking_where_tastes_conflict() -> None:
    problem = make_problem("conflict", n_user_types=5, n_items=12, n_positions=2, seed=1)
    assert solve_lottery(problem, "maximin").value > 1.5 * solve(problem, "maximin").value


def test_draws_have_the_odds_of_the_lottery() -> None:
    # Each of 3 shares is within 5 standard errors: an error rate below 1e-5.
    problem = make_problem("conflict", n_user_types=3, n_items=12, n_positions=1, seed=1)
    lottery = solve_lottery(problem, "maximin")
    rng = np.random.default_rng(1)
    drawn = np.array([lottery.draw(rng)[0] for _ in range(4000)])
    for ranking, p in zip(lottery.rankings, lottery.probabilities, strict=True):
        assert abs((drawn == ranking[0]).mean() - p) < 5 * math.sqrt(p * (1 - p) / 4000)


def test_prices_are_the_slopes_of_the_value() -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=12, n_positions=3, seed=2)
    items = (0, 1, 2)
    for utility in (NASH, MAXIMIN):
        values = [
            solve_lottery(problem, utility, guarantees=[LeastExposure(level, items=items)])
            for level in (0.1, 0.1 - 1e-5)
        ]
        price = sum(report.price for report in values[0].guarantees)
        assert (values[1].value - values[0].value) / 1e-5 == pytest.approx(price, rel=1e-2, abs=1e-6)
        assert values[0].unguaranteed_value > values[0].value


def test_prices_are_unknown_at_the_limit_of_what_can_be_kept() -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=8, n_positions=3, seed=2)
    for utility in (NASH, MAXIMIN):
        solved = [
            solve_lottery(problem, utility, guarantees=[LeastExposure(level)])
            for level in (1 / 8, 1 / 8 - 1e-3)
        ]
        assert {report.price for report in solved[0].guarantees} == {None}
        assert all(report.is_binding for report in solved[0].guarantees)
        prices = [report.price for report in solved[1].guarantees]
        assert None not in prices
        assert max(prices) > 0.0


def test_a_plot_of_personalized_lotteries_names_the_user_types() -> None:
    problem = make_problem("conflict", n_user_types=8, n_items=8, n_positions=2, seed=2)
    lottery = solve_lottery(problem, guarantees=[LeastExposure(0.05)], treatment="personalized")
    panel = plot_lottery(problem, lottery).axes[0]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == list(problem.user_types[:6])
    assert len(panel.patches) <= 6 * 12
    assert panel.get_xlabel().endswith("2 more user types")


@pytest.mark.parametrize("size", [None, "column", "page"])
def test_bars_and_texts_of_a_plot_are_inside_and_apart(size: Size | None) -> None:
    """Finding 5: bars lie inside their axes and texts do not overlap, with long names and many user types."""
    problem = make_problem("conflict", n_user_types=14, n_items=20, n_positions=2, seed=2)
    items, types = (
        tuple(f"a $very long name of {kind} {n}" for n in range(count))
        for kind, count in (("an item", 20), ("a user type", 14))
    )
    problem = replace(problem, items=items, user_types=types)
    title = "A very long title that says everything about a lottery, and then goes on and on " * 2
    for treatment in ("equal", "personalized"):
        lottery = solve_lottery(problem, guarantees=[LeastExposure(0.01)], treatment=treatment)
        check_figure(plot_lottery(problem, lottery, title=title, size=size))


def test_a_plot_states_what_it_leaves_out(tmp_path: Path) -> None:
    problem = make_problem("conflict", n_user_types=14, n_items=30, n_positions=2, seed=2)
    lottery = solve_lottery(problem, "nash", guarantees=[LeastExposure(0.01)])
    rankings, items, user_types = plot_lottery(problem, lottery).axes
    rest = lottery.probabilities[12:]
    assert rest.size > 0
    assert rankings.get_xlabel() == f"probability\nand {rest.size} more rankings, {rest.sum():.1%} in all"
    assert "and 18 more items, " in items.get_xlabel()
    assert user_types.get_xlabel() == "expected clicks per visit\nand 2 more user types"
    save_lottery_plot(problem, lottery, None, tmp_path / "many.svg")
    assert "nash" in (text := (tmp_path / "many.svg").read_text())
    assert "30 guarantees, " in text
    few = solve_lottery(problem, "nash", guarantees=[LeastExposure(0.25, items=["item-3"])])
    save_lottery_plot(problem, few, None, tmp_path / "few.svg")
    assert "exposure of item-3 at least 0.25" in (tmp_path / "few.svg").read_text()


def test_guarantees_that_cannot_be_kept_are_rejected_with_the_largest_factor() -> None:
    problem = make_problem("conflict", n_user_types=3, n_items=12, n_positions=2, seed=1)
    with pytest.raises(UnsolvableError, match=r"largest common factor is 0\.\d+") as error:
        solve_lottery(problem, "nash", guarantees=[LeastExposure(0.05), KeptShare(0.9)])
    factor = float(str(error.value).split("factor is ")[1].split()[0])
    kept = [LeastExposure(0.05 * factor), KeptShare(0.9 * factor)]
    assert solve_lottery(problem, "nash", guarantees=kept).is_certified
    more = [LeastExposure(0.0501 * factor), KeptShare(0.902 * factor)]
    with pytest.raises(UnsolvableError, match="largest common factor"):
        solve_lottery(problem, "nash", guarantees=more)


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (UnsolvableError, {"utility": sigmoid()}, "needs a concave utility or maximin, got sigmoid:20:0.3"),
        (
            InvalidInputError,
            {"guarantees": [LeastExposure(0.3)]},
            "guarantees must have least exposures that sum to at most 1,",
        ),
        (
            UnknownNameError,
            {"guarantees": [LeastExposure(0.1, items=["ad-9"])]},
            "item must be one of ad-1, .* got 'ad-9'",
        ),
        (
            InvalidInputError,
            {"guarantees": [LeastExposure(0.1, items=[5])]},
            "item must be a name, or a number",
        ),
        (
            UnknownNameError,
            {"guarantees": [KeptShare(0.1, user_types=["men"])]},
            "user_type must be one of .* got 'men'",
        ),
        (
            InvalidInputError,
            {"guarantees": [0.1]},
            "guarantees must be a list of LeastExposure and KeptShare, got 0.1",
        ),
        (UnknownNameError, {"treatment": "fair"}, "treatment must be one of equal, personalized"),
        (InvalidInputError, {"target_gap": 2.0}, "target_gap must be a number from 1e-12 to 1"),
        (
            InvalidInputError,
            {"treatment": "personalized", "bonuses": np.ones(5)},
            "bonuses must be 0 under personalized treatment, got 1.0",
        ),
    ],
)
def test_invalid_arguments_are_rejected_in_one_line(error: Any, arguments: dict, message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        solve_lottery(kdd2012(), **arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("level", [-0.1, 1.1, math.nan, "x"])
def test_levels_and_shares_are_from_0_to_1(level: float) -> None:
    with pytest.raises(InvalidInputError, match="least exposure must be a number from 0 to 1"):
        LeastExposure(level)
    with pytest.raises(InvalidInputError, match="kept share must be a number from 0 to 1"):
        KeptShare(level)


def test_a_type_without_a_liked_item_has_a_value_of_0() -> None:
    problem = SolverProblem(
        np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.array([[0.0, 0.0, 0.0], [0.2, 0.4, 0.6]])
    )
    assert solve_lottery(problem, "nash").value == -math.inf
    assert solve_lottery(problem, "maximin").value == 0.0
    lottery = solve_lottery(problem, alpha_fair(0.5))
    assert lottery.value == pytest.approx(math.sqrt(0.5))
    assert lottery.is_certified


def test_types_of_weight_0_do_not_count() -> None:
    problem = SolverProblem(
        np.array([0.0, 1.0]), np.ones((2, 1)), np.array([[0.9, 0.1, 0.1], [0.2, 0.4, 0.6]])
    )
    for utility in (NASH, MAXIMIN, UTILITARIAN):
        lottery = solve_lottery(problem, utility)
        assert lottery.rankings.tolist() == [[2]]
        assert lottery.is_certified


def test_an_item_given_by_name_and_number_is_refused() -> None:
    twice = LeastExposure(1.0, items=[0, "ad-1"], is_group=True)
    with pytest.raises(InvalidInputError, match="items must be different items"):
        solve_lottery(kdd2012(), guarantees=[twice])


@pytest.mark.parametrize("items", [3, [[1]]])
def test_items_that_are_no_names_are_refused(items: Any) -> None:
    with pytest.raises(InvalidInputError, match="items must be different names or numbers"):
        LeastExposure(0.1, items=items)


@pytest.mark.parametrize("utility", [MAXIMIN, alpha_fair(0.5)])
def test_a_problem_without_clicks_is_certified_at_0(utility: Utility) -> None:
    problem = Problem([0.5, 0.5], [[0.5, 0.5]] * 2, np.zeros((2, 3)))
    lottery = solve_lottery(problem, utility)
    assert (lottery.value, lottery.upper_bound, lottery.is_certified) == (0.0, 0.0, True)


def test_levels_that_only_rounding_allows_have_a_bound_above_the_value() -> None:
    problem = Problem([1.0], [[1.0]], [[0.25, 0.0, 0.5]])
    lottery = solve_lottery(problem, alpha_fair(0.5), guarantees=[LeastExposure((1.0 + 9e-10) / 3)])
    assert lottery.upper_bound >= lottery.value
    assert lottery.gap <= 1e-8


def test_of_guarantees_for_the_same_items_the_largest_counts() -> None:
    group = [
        LeastExposure(level, items=items, is_group=True) for level, items in ((0.1, [0, 1]), (0.2, [1, 0]))
    ]
    lottery = solve_lottery(
        kdd2012(), guarantees=[LeastExposure(0.01), LeastExposure(0.05, items=[0]), *group]
    )
    levels = {one.name: one.level for one in lottery.guarantees}
    assert levels == {
        "exposure of ad-1": 0.05,
        **{f"exposure of ad-{j}": 0.01 for j in range(2, 6)},
        "exposure of ad-1, ad-2": 0.2,
    }


@pytest.mark.parametrize(
    ("utility", "guarantees", "treatment"),
    [
        ("maximin", [], "equal"),
        ("maximin", [LeastExposure(0.03), KeptShare(0.2)], "equal"),
        ("utilitarian", [LeastExposure(0.03), KeptShare(0.3)], "equal"),
        ("utilitarian", [LeastExposure(0.05), KeptShare(0.3)], "personalized"),
    ],
)
def test_tiny_values_have_the_lottery_of_large_ones(
    utility: str, guarantees: list[Guarantee], treatment: Any
) -> None:
    problem = make_problem("conflict", n_user_types=4, n_items=10, n_positions=2, seed=1)
    settings: dict[str, Any] = {"guarantees": guarantees, "treatment": treatment}
    large, tiny = (
        solve_lottery(
            Problem(**{**problem.to_dict(), "item_means": factor * problem.item_means}), utility, **settings
        )
        for factor in (1.0, 1e-12)
    )
    assert tiny.is_certified
    assert tiny.value == pytest.approx(1e-12 * large.value, rel=1e-9)
    assert tiny.upper_bound >= tiny.value
    for one, other in zip(large.guarantees, tiny.guarantees, strict=True):
        is_value = one.name.startswith("value of")
        assert other.level == pytest.approx(one.level * (1e-12 if is_value else 1.0), rel=1e-9)
        assert other.price == pytest.approx(one.price * (1.0 if is_value else 1e-12), rel=1e-6)
        assert other.is_kept


def test_too_many_guarantees_are_refused() -> None:
    problem = make_problem("synthetic", n_user_types=1, n_items=MAX_ROWS + 1, n_positions=2, seed=0)
    with pytest.raises(InvalidInputError, match="guarantees must be of at most 2,000 items, groups and user"):
        solve_lottery(problem, guarantees=[LeastExposure(1e-6)])
