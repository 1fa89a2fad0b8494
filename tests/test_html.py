"""Objects have an HTML form in notebooks: compact, escaped, and readable on light and dark backgrounds."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from banditrank import (
    Counts,
    Estimates,
    Policy,
    Problem,
    SimulationResult,
    Solution,
    UCBRank,
    estimate,
    kdd2012,
    make_problem,
    make_timeline,
    simulate,
    solve,
)

HOSTILE = "<script>alert('&\"')</script>"
TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Hostile(Policy):
    """Its name is markup."""

    name = HOSTILE

    def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN201, ARG002
        return np.arange(counts.n_positions)


class Reader(HTMLParser):
    """Collects the text and the cells of a document, and checks that its elements are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def read(thing: Any) -> Reader:
    return Reader(thing._repr_html_())


def small_counts() -> Counts:
    return Counts.from_arrays([[[100, 100], [100, 100]]], [[[20, 10], [40, 20]]], [200])


def hostile_problem() -> Problem:
    return Problem(
        [0.5, 0.5],
        [[0.7, 0.3], [0.4, 0.6]],
        [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]],
        user_types=[HOSTILE, "</td></tr></table>"],
        items=[f"{HOSTILE}1", "&amp;", "<img src=x onerror=alert(1)>"],
        name=HOSTILE,
    )


def test_a_problem_shows_its_names_and_rates() -> None:
    page = read(kdd2012())
    assert "".join(page.texts).startswith("Problem kdd2012 · 2 user types · 5 items · 2 positions")
    assert [cell for cell in page.cells if cell.startswith("ad-")] == list(kdd2012().items)
    assert page.cells.count("0.808") == 1
    assert page.cells.count("male") == 2


def test_a_solution_names_the_items() -> None:
    page = read(solve(kdd2012(), "nash"))
    assert page.cells[:6] == ["position", "item", "1", "ad-3", "2", "ad-4"]
    assert "certified optimal" in "".join(page.texts)
    assert {"male", "female"} <= set(page.cells)
    assert repr(solve(kdd2012())).startswith("<Solution ad-3, ad-4: value 0.621296, certified, by ")


def test_a_solution_of_estimates_numbers_the_items() -> None:
    solution = solve(estimate(small_counts()))
    assert (solution.items, solution.user_types) == (("item-2", "item-1"), ("type-1",))


def test_a_solution_that_is_not_certified_shows_its_gap() -> None:
    problem = make_problem("random", n_user_types=6, n_items=60, n_positions=8, seed=1)
    solution = solve(problem, "maximin", on_progress=lambda _: False)
    assert not solution.is_certified
    assert "not certified: gap " in "".join(read(solution).texts)
    assert f"gap {solution.gap:.2g}" in repr(solution)


def test_counts_show_rewards_and_displays() -> None:
    page = read(small_counts())
    assert "Counts · 200 rounds · 1 user type · 2 items · 2 positions" in "".join(page.texts).replace(
        "  ", " "
    )
    assert {"20 / 100", "10 / 100", "40 / 100"} <= set(page.cells)
    assert "0.5 / 1" in read(Counts.from_arrays([[[1]]], [[[0.5]]], [1])).cells


def test_estimates_show_means_and_looks() -> None:
    page = read(estimate(small_counts()))
    assert {"0.300", "0.600", "item-1", "type-1, looks"} <= set(page.cells)
    assert isinstance(estimate(small_counts()), Estimates)


def test_a_result_shows_its_summary_and_violations() -> None:
    result = simulate(UCBRank(coefficient=0.25), kdd2012(), 500, 3, 1, click_model="cascade")
    page = read(result)
    text = "".join(page.texts)
    assert (
        "ucb-rank-personalized-0.25 · kdd2012, cascade clicks · 500 rounds · 3 replications · seed 1" in text
    )
    assert f"{result.mean[-1]:,.4g}" in page.cells
    assert f"{result.median[-1]:,.4g}" in page.cells
    assert f"⚠ {result.violations[0]}" in text


def test_a_result_without_replications_can_be_shown() -> None:
    whole = simulate(UCBRank(coefficient=0.25), kdd2012(), 100, 2)
    values = {name: getattr(whole, name) for name in SimulationResult.__slots__}
    for name in ("replications", "regret", "optimal_rate", "initial_rounds"):
        values[name] = values[name][:0]
    assert "0 of 2 replications finished" in "".join(read(SimulationResult(**values)).texts)


@pytest.mark.parametrize(
    "make",
    [
        hostile_problem,
        lambda: solve(hostile_problem()),
        lambda: simulate(Hostile(), hostile_problem(), 50, 1),
        lambda: simulate("random", make_timeline(hostile_problem(), "item-jumps:1", horizon=50), 50, 1),
    ],
    ids=["problem", "solution", "result", "timeline"],
)
def test_names_are_text_and_never_markup(make: Callable[[], Problem | Solution | SimulationResult]) -> None:
    assert HOSTILE[:30] in "".join(read(make()).texts)  # `Reader` accepts no other elements or attributes


@pytest.mark.parametrize("kind", ["problem", "counts", "estimates", "solution"])
def test_large_objects_are_truncated(kind: str) -> None:
    problem = make_problem("conflict", n_user_types=30, n_items=2000, n_positions=20, seed=1)
    things = {
        "problem": lambda: problem,
        "counts": lambda: Counts.empty_for(problem),
        "estimates": lambda: estimate(Counts.empty_for(problem)),
        "solution": lambda: solve(problem),
    }
    html = things[kind]()._repr_html_()
    assert len(html) < 40_000
    text = "".join(Reader(html).texts)
    assert "and 10 more positions" in text if kind == "solution" else "and 1,990 more items" in text


def test_a_long_name_is_shortened() -> None:
    problem = Problem([1.0], [[1.0]], [[0.5]], items=["x" * 5000], name="y" * 5000)
    assert len(problem._repr_html_()) < 5000


@pytest.mark.parametrize(
    "make", [kdd2012, small_counts, lambda: solve(kdd2012())], ids=["problem", "counts", "solution"]
)
def test_colours_suit_light_and_dark_backgrounds(make: Callable[[], Problem | Counts | Solution]) -> None:
    html = make()._repr_html_()
    assert not re.search(r"[^-]color:", html)  # text has the notebook's colour
    backgrounds = set(re.findall(r"background: ([^;\"]+)", html))
    for background in backgrounds - {"none"}:
        alpha = float(background.rsplit(",", 1)[1].rstrip(")"))
        assert background.startswith("rgba(")
        assert alpha <= 0.4


def test_tints_and_decimals_follow_the_largest_rate() -> None:
    rare = Problem([1.0], [[1.0]], [[0.0004, 0.0002]])
    assert {"0.000400", "0.000200"} <= set(read(rare).cells)
    never = Problem([1.0], [[1.0]], [[0.0, 0.0]])
    assert "0.00" in read(never).cells
