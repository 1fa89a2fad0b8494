from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.figure_checks import check_figure
from hypothesis import given
from hypothesis import strategies as st

from banditrank import (
    FrontierPoint,
    InvalidInputError,
    Problem,
    alpha_fair,
    kdd2012,
    make_problem,
    pareto_frontier,
    plot_frontier,
    save_frontier_plot,
)
from banditrank._figures import Size
from banditrank.model._generators import FAMILIES


def example(seed: int = 1) -> Problem:
    return make_problem("conflict", n_user_types=3, n_items=6, n_positions=3, seed=seed)


@given(family=st.sampled_from(sorted(FAMILIES)), seed=st.integers(0, 10**6))
def test_the_ends_have_the_largest_total_and_the_largest_worst_off_value(family: str, seed: int) -> None:
    points = pareto_frontier(make_problem(family, n_user_types=3, n_items=6, n_positions=3, seed=seed))
    totals, worsts = [point.total for point in points], [point.worst for point in points]
    assert totals[0] >= max(totals) - 1e-12
    assert worsts[-1] >= max(worsts) - 1e-12
    assert points[0].price_of_equality <= min(point.price_of_equality for point in points) + 1e-12
    for point in points:
        assert point.is_certified
        assert point.total <= point.equality.personalized_total + 1e-12
        assert point.worst <= point.equality.personalized_values.min() + 1e-12
        assert point.lottery is not None
        assert point.lottery.value >= point.solution.value - 1e-8 * max(1.0, abs(point.solution.value))
    assert points[-1].lottery_worst >= worsts[-1] - 1e-9
    assert points[0].lottery_total >= totals[0] - 1e-9


def test_points_are_in_order_each_once() -> None:
    points = pareto_frontier(example(), alphas=[5, 1, 0, 1.0, 0.5])
    assert [str(point.utility) for point in points] == [
        *("utilitarian", "alpha:0.5", "nash", "alpha:5", "maximin")
    ]
    assert [str(point.utility) for point in pareto_frontier(example(), alphas=[])] == [
        "utilitarian",
        "maximin",
    ]


@pytest.mark.parametrize("alpha", [-1, 1001, float("nan"), True])
def test_an_invalid_alpha_is_rejected(alpha: float) -> None:
    with pytest.raises(InvalidInputError, match="alpha must be a number from 0 to 1,000, got"):
        pareto_frontier(example(), alphas=[alpha])


def test_an_arbitrary_ranking_is_marked_and_not_drawn() -> None:
    problem = Problem([0.5, 0.5], [[1.0], [1.0]], [[0.0, 0.0], [0.8, 0.4]])  # nothing appeals to type-1
    points = pareto_frontier(problem, alphas=[1])
    assert [point.is_arbitrary for point in points] == [False, True, False]
    labels = [text.get_text() for text in plot_frontier(points).axes[0].texts]
    assert not any("nash" in label for label in labels)
    with pytest.raises(InvalidInputError, match="must contain one that is not arbitrary"):
        plot_frontier([points[1]])


def test_utilities_that_choose_the_same_ranking_share_a_label() -> None:
    labels = {text.get_text() for text in plot_frontier(pareto_frontier(example())).axes[0].texts} - {""}
    assert labels >= {"utilitarian, α=0.5", "nash", "α=2", "α=5", "maximin", "lotteries"}
    assert len(labels) == 7


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.campaign) for s in range(2, 6))])
@pytest.mark.parametrize("size", [None, "column"])
def test_labels_overlap_neither_each_other_nor_a_marker(seed: int, size: Size | None) -> None:
    figure = plot_frontier(pareto_frontier(example(seed), alphas=[0.2, 0.5, 1, 2, 5, 10]), size=size)
    (axes,) = figure.axes
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    marks = [line for line in axes.lines if line.get_marker() in ("o", "D")]
    frame = axes.get_window_extent()
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1
        for mark in marks:
            assert not box.contains(*axes.transData.transform(mark.get_xydata()[0]))


@pytest.mark.parametrize("size", [None, "column"])
def test_points_and_texts_are_inside_and_apart(size: Size | None) -> None:
    """Finding 5: a frontier lies inside its axes and texts do not overlap, with a long title."""
    points = pareto_frontier(example(0), alphas=[0.5, 2])
    title = "A very long title that says everything about a frontier, and then goes on and on"
    check_figure(plot_frontier(points, size=size, title=title))
    check_figure(plot_frontier(points[:1], size=size))


def test_uncertified_points_are_hollow_and_labelled() -> None:
    points = pareto_frontier(example(), alphas=[])
    for gap, told in ((0.25, "gap 0.25"), (np.inf, "gap unknown")):
        last = replace(points[-1], solution=replace(points[-1].solution, is_certified=False, gap=gap))
        (axes,) = plot_frontier([points[0], last]).axes
        assert f"maximin\n(not certified: {told})" in [text.get_text() for text in axes.texts]
        assert [line.get_markerfacecolor() for line in axes.lines[:2]] == ["C0", "white"]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_are_written(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"frontier.{ending}"
    save_frontier_plot(kdd2012(), pareto_frontier(kdd2012()), path)
    assert path.stat().st_size > 5000


def test_nearly_equal_values_are_not_magnified() -> None:
    (axes,) = plot_frontier(pareto_frontier(kdd2012())).axes  # worst-off values of 0.4904 and 0.4906
    low, high = axes.get_ylim()
    assert high - low > 0.02


@pytest.mark.parametrize("seed", [1, 2])
def test_the_points_fill_the_axes_and_the_price_grows_to_the_right(seed: int) -> None:
    points = pareto_frontier(example(seed))
    (axes,) = plot_frontier(points).axes
    for limits, values in (
        (axes.get_xlim(), [x for point in points for x in (point.price_of_equality, point.lottery_price)]),
        (axes.get_ylim(), [y for point in points for y in (point.worst, point.lottery_worst)]),
    ):
        assert limits[0] < min(values) < max(values) < limits[1]
        assert max(values) - min(values) > 0.7 * (limits[1] - limits[0])


def test_personalized_treatment_is_a_diamond_only_where_it_is_near() -> None:
    def diamonds(points: list[FrontierPoint]) -> list[list[float]]:
        (axes,) = plot_frontier(points).axes
        return [line.get_xydata().tolist()[0] for line in axes.lines if line.get_marker() == "D"]

    near, far = pareto_frontier(kdd2012(), alphas=[]), pareto_frontier(example(2), alphas=[])
    assert diamonds(near) == [[0, pytest.approx(0.4906, abs=1e-4)]]
    assert not diamonds(far)
    texts = [text.get_text() for text in plot_frontier(far).axes[0].texts]
    assert "◇ personalized, off the scale: 0.407 at 0%" in texts


def test_titles_and_labels_are_those_given() -> None:
    points = pareto_frontier(kdd2012(), alphas=[])
    (axes,) = plot_frontier(points, title="$\\alpha$", x_label="lost", y_label="worst").axes
    assert axes.get_title("left") == "$\\alpha$"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lost", "worst")


def test_odd_names_are_drawn(tmp_path: Path) -> None:
    problem = Problem([1.0], [[1.0]], [[0.5]], name="a$_$b 日本")
    save_frontier_plot(problem, pareto_frontier(problem), tmp_path / "odd.png")
    with pytest.raises(InvalidInputError, match=r"plot file must end in \.png"):
        save_frontier_plot(problem, pareto_frontier(problem), tmp_path / "odd.gif")
    with pytest.raises(InvalidInputError, match="plot file must be writable"):
        save_frontier_plot(problem, pareto_frontier(problem), tmp_path / "missing" / "odd.png")


def test_a_problem_of_zero_means_has_a_frontier(tmp_path: Path) -> None:
    problem = Problem([0.5, 0.5], [[1.0], [1.0]], [[0.0, 0.0], [0.0, 0.0]])
    points = pareto_frontier(problem, alphas=[0.5])
    assert [(point.total, point.price_of_equality, point.solution.gap) for point in points] == [(0, 0, 0)] * 3
    save_frontier_plot(problem, points, tmp_path / "nothing.png")


def test_a_distant_label_is_connected_to_its_marker() -> None:
    points = pareto_frontier(example(), alphas=[])
    crowd = [
        replace(
            points[0],
            utility=alpha_fair(number + 2),
            equality=replace(
                points[0].equality, user_type_values=points[0].equality.user_type_values * scale
            ),
        )
        for number, scale in enumerate(np.linspace(0.95, 1.0, 9))
    ]
    (axes,) = plot_frontier([*crowd, points[-1]]).axes
    leaders = [text for text in axes.texts if not text.get_text()]
    assert leaders
    labels = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert not any(box.overlaps(other) for k, box in enumerate(labels) for other in labels[:k])
