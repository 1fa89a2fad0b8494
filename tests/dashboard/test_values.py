"""Charts, their readouts and their tables show the values of the documents."""

import re
from collections.abc import Iterator
from itertools import starmap

import numpy as np
import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import Made, make
from helpers.dashboard_page import readouts, rows_of, settled
from helpers.dashboard_server import Fixture, serving
from playwright.sync_api import Page

TWO = make("two")
THREE = make("three", types=("New", "Returning", "Member"), n_positions=3, treatment="equal", utility="nash")
UNKNOWN = make("unknown", truth=False)
SIX = make("six", types=("New", "Returning", "Member", "Guest", "Staff", "Press"), seed=5)
SEVERAL = make("several", n_positions=3, click_model="position-based")  # clicks per visit
IN_DEPTH = pytest.mark.campaign
PIXEL = 1.0  # tolerance, since printed numbers are rounded

# Returns the axis labels, and the positions of marks and intervals, of a chart with a horizontal axis.
_HORIZONTAL = """chart => ({
  axis: [...chart.querySelectorAll("svg > text[text-anchor=middle]")]
    .map(t => [+t.getAttribute("x"), t.textContent]),
  marks: [...chart.querySelectorAll("[data-mark]")].map(mark => {
    const middle = shape => { const box = shape.getBBox(); return box.x + box.width / 2; };
    const whisker = mark.querySelector(".wh");
    const truth = mark.querySelector(".tr");
    return [middle(mark.querySelector(".mk")), +whisker.getAttribute("x1"), +whisker.getAttribute("x2"),
      truth && middle(truth)];
  }),
})"""

# Returns the axis labels and the points of the lines of a chart over time.
_VERTICAL = """chart => ({
  axis: [...chart.querySelectorAll("svg > text[text-anchor=end]")]
    .map(t => [+t.getAttribute("y") - 4, t.textContent]).filter(([, words]) => /^[\\d.,%]+$/.test(words)),
  points: [...chart.querySelectorAll(".ln")].flatMap(line =>
    line.getAttribute("d").slice(1).split("L").map(point => point.split(" ").map(Number))),
})"""


@pytest.fixture(scope="module")
def server() -> Iterator[Fixture]:
    with serving(TWO, THREE, UNKNOWN, SIX, SEVERAL) as fixture:
        yield fixture


def number_in(words: str) -> float:
    found = words.replace(",", "").replace("−", "-").rstrip("%")
    return float(found) / (100 if words.endswith("%") else 1)


def ends_in(words: str) -> tuple[float, float]:
    low, high = words.split("–")
    return number_in(low), number_in(high)


def placing(axis: list[list[float | str]]) -> np.poly1d:
    """Return the function from values to pixels, from the labels of an axis."""
    return np.poly1d(np.polyfit([number_in(str(words)) for _, words in axis], [at for at, _ in axis], 1))


def assert_marks_agree_with_the_table(page: Page, key: str, rows: list[list[str]], truth: int | None) -> None:
    """Check the marks of a chart against rows with an estimate, an interval and maybe a true value."""
    found = page.locator(f"[data-chart={key}]").evaluate(_HORIZONTAL)
    place = placing(found["axis"])
    assert len(found["marks"]) == len(rows)
    for (middle, low, high, true), row in zip(found["marks"], rows, strict=True):
        expected_values = [number_in(row[1]), *ends_in(row[2])]
        assert [middle, low, high] == pytest.approx(list(place(expected_values)), abs=PIXEL), row
        assert (true is None) == (truth is None)
        if truth is not None:
            assert true == pytest.approx(place(number_in(row[truth])), abs=PIXEL), row


# Opening a page takes half a second of the processor: each surface at one width, at the other in depth.
@pytest.mark.parametrize(
    ("made", "width"),
    [
        pytest.param(made, width, id=f"{width}-{made.name}", marks=marks)
        for made, usual in ((TWO, 390), (THREE, 1440), (UNKNOWN, 1440), (SEVERAL, 390))
        for width, marks in ((usual, ()), (390 + 1440 - usual, IN_DEPTH))
    ],
)
def test_estimates(made: Made, width: int, server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page(made.name), width=width))
    types = made.dashboard["surface"]["user_types"]
    truth = made.dashboard["has_true_values"]
    for key, pattern in (("positions", r"[\d.]+%"), ("items", r"[\d.]+")):
        rows = rows_of(page, key)
        decimals = 1 if key == "positions" else 3
        scale = 100 if key == "positions" else 1
        expected_values = [
            one
            for index in range(len(rows) // len(types))
            for row in made.dashboard[key]
            for one in [row[index]]
        ]
        for row, one in zip(rows, expected_values, strict=True):
            expected = [f"{scale * one[name]:.{decimals}f}" for name in ("estimate", "low", "high")]
            assert re.findall(r"\d+\.\d+", f"{row[1]} {row[2]}") == expected
        said = readouts(page, key)
        for words, row in zip(said, rows, strict=True):
            ending = f", true {row[3]}" if truth else ""
            assert words == f"{row[0]}: {row[1]} ({row[2]}){ending}"
            assert re.search(pattern, words)
        assert_marks_agree_with_the_table(page, key, rows, 3 if truth else None)
        printed = page.locator(f"[data-chart={key}]").text_content() or ""
        for row in rows:
            assert row[1] in printed
            assert row[2] in printed


def test_charts_of_many_types_have_the_same_scale(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("six")))
    types = SIX.dashboard["surface"]["user_types"]
    for key in ("positions", "items"):
        rows = rows_of(page, key)
        scales = set()
        for number, name in enumerate(types):
            own = [row for row in rows if row[0].endswith(f", {name}")]
            assert len(own) == len(rows) / len(types)
            assert_marks_agree_with_the_table(page, f"{key}-{number}", own, 3)
            labels = page.locator(f"[data-chart={key}-{number}] svg > text[text-anchor=middle]")
            scales.add(tuple(labels.all_inner_texts()))
        assert len(scales) == 1


@pytest.mark.parametrize("made", [TWO, THREE, UNKNOWN, SIX, SEVERAL], ids=lambda made: made.name)
def test_values_under_each_treatment(made: Made, server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page(made.name)))
    types, fair = made.dashboard["surface"]["user_types"], made.dashboard["treatments"]
    rows = rows_of(page, "treatments")
    expected_values = [
        (one["value"][i], one["low"][i], one["high"][i]) for one in fair for i in range(len(types))
    ]
    for row, (value, low, high) in zip(rows, expected_values, strict=True):
        assert row[1:3] == [f"{value:.3f}", f"{low:.3f}–{high:.3f}"]
    by_type = [rows[treatment * len(types) + i] for i in range(len(types)) for treatment in range(len(fair))]
    assert_marks_agree_with_the_table(
        page, "treatments", by_type, 5 if made.dashboard["has_true_values"] else None
    )
    for words, row in zip(readouts(page, "treatments"), by_type, strict=True):
        assert words.startswith(f"{row[0]}: {row[1]} ({row[2]})")


@pytest.mark.parametrize(
    ("made", "who"),
    [
        pytest.param(TWO, "All", id="two-All"),
        pytest.param(UNKNOWN, "Female", id="unknown-Female"),
        pytest.param(SEVERAL, "All", id="several-All"),
        pytest.param(TWO, "Female", id="two-Female", marks=IN_DEPTH),
        pytest.param(UNKNOWN, "All", id="unknown-All", marks=IN_DEPTH),
        pytest.param(SEVERAL, "Female", id="several-Female", marks=IN_DEPTH),
    ],
)
def test_clicks(made: Made, who: str, server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page(made.name)))
    page.get_by_role("radio", name=who).check(force=True)
    rows = rows_of(page, "clicks")
    counts = [
        [sum(bucket) if who == "All" else bucket[1] for bucket in made.series[name]]
        for name in ("visits", "clicks")
    ]
    for row, visits, clicks in zip(rows, *counts, strict=True):
        assert row[1:3] == [f"{visits:,}", f"{clicks:,.0f}"]
        assert number_in(row[3]) == pytest.approx(clicks / visits, abs=0.000501)
    for words, row in zip(readouts(page, "clicks"), rows, strict=True):
        events = f"; {row[-1]}" if row[-1] else ""
        assert words == f"{row[0]}: {row[3]} clicks per visit ({row[4]}), {row[1]} visits{events}"
    assert [row[-1] for row in rows if row[-1]] == ["service restarted"]
    found = page.locator("[data-chart=clicks]").evaluate(_VERTICAL)
    place = placing(found["axis"])
    values = place([number_in(row[3]) for row in rows])
    floor, top = sorted(place([number_in(str(words)) for _, words in (found["axis"][0], found["axis"][-1])]))
    inside = [i for i, y in enumerate(values) if floor <= y <= top]  # others are cut at the edge
    assert len(inside) > len(rows) / 2
    assert [found["points"][i][1] for i in inside] == pytest.approx([values[i] for i in inside], abs=PIXEL)
    optimum = [one["estimate"] for one in made.dashboard["optimum"]]
    best = np.average(optimum, weights=made.series["visits"][-1]) if who == "All" else optimum[1]
    words = "optimum" if made.dashboard["has_true_values"] else "estimated optimum"
    assert f"{words} {best:.3f}" in page.locator("[data-chart=clicks]").text_content()
    assert number_in(rows[-1][5]) == pytest.approx(best, abs=5e-4)
    page.get_by_role("radio", name="All").check(force=True)  # other tests share the page


def test_buckets_without_compared_visits_have_no_exploration(open_page: OpenPage) -> None:
    made = make("gap")
    for bucket in (3, 5):
        made.series["other_item"][bucket] = made.series["other_order"][bucket] = None
    made.series["visits"][3] = made.series["clicks"][3] = [0, 0]
    with serving(made) as server:
        page = settled(open_page(server.page("gap")))
        rows = rows_of(page, "exploration")
        assert [rows[bucket][1:] for bucket in (3, 5)] == [["–", "–"]] * 2
        said = readouts(page, "exploration")
        assert said[3].endswith(": no visits")
        assert said[5].endswith(": visits were not compared with the best ranking")
        for kind in ("e1", "e2"):
            assert page.locator(f"[data-chart=exploration] .{kind}").count() == 3  # before, between and after


def test_exploration_and_regret(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("two")))
    series = TWO.series
    explored = rows_of(page, "exploration")
    shares = zip(series["other_item"], series["other_order"], strict=True)
    assert [row[1:] for row in explored] == [[f"{100 * one:.1f}%" for one in pair] for pair in shares]
    for words, row in zip(readouts(page, "exploration"), explored, strict=True):
        assert words == f"{row[0]}: {row[1]} other item, {row[2]} other order"
    regret = rows_of(page, "regret")
    visits = np.cumsum([sum(bucket) for bucket in series["visits"]])
    expected = list(
        starmap(
            lambda value, count: [f"{value:.1f}", f"{count:,}"], zip(series["regret"], visits, strict=True)
        )
    )
    assert [row[1:] for row in regret] == expected
    for words, row in zip(readouts(page, "regret"), regret, strict=True):
        assert words == f"{row[0]}: {row[1]} clicks in {row[2]} visits"
    found = page.locator("[data-chart=regret]").evaluate(_VERTICAL)
    place = placing(found["axis"])
    assert [y for _, y in found["points"]] == pytest.approx(list(place(series["regret"])), abs=PIXEL)


def test_true_values_are_shown_in_demos_only(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("unknown")))
    assert page.locator(".tr").count() == 0
    assert page.locator("[data-chart=regret]").count() == 0
    assert page.locator(".ob").count() == 1  # the band of the estimated optimum
    assert "Demo" not in page.inner_text("main")


def test_values_in_cards_add_up(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("two")))
    for number, card in enumerate(page.locator(".card").all()):
        cells = [row.split("\n") for row in card.locator("tbody tr").all_inner_texts()]
        parts = [float(re.findall(r"= ([\d.]+)", " ".join(row))[0]) for row in cells]
        shown = float(card.locator("tfoot b").inner_text())
        assert sum(parts) == pytest.approx(shown, abs=0.0005 * (len(parts) + 1))
        assert shown == pytest.approx(TWO.dashboard["best_rankings"][number]["value"], abs=0.0005)


def test_exposure_is_a_share_of_rankings(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("two")))
    displays = np.array(TWO.dashboard["displays"])
    rankings = displays[:, 0, :].sum(axis=1)
    rows = page.locator(".heat tbody tr").all()
    for item, row in enumerate(rows):
        printed = row.locator("td:not(.sh)").all_inner_texts()
        shares = [displays[i, k, item] / rankings[i] for i in range(2) for k in range(2)]
        for words, share in zip(printed, shares, strict=True):
            assert words == ("<1" if 0 < share < 0.005 else f"{100 * share:.0f}")


def test_exposure_of_each_type_has_the_share_of_its_looks(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("three")))
    displays = np.array(THREE.dashboard["displays"])  # (N, K, M)
    preferences = np.array([[one["estimate"] for one in row] for row in THREE.dashboard["positions"]])
    looks = np.einsum("ik,ikm->im", preferences, displays)
    tables = page.locator(".heat").all()
    for table, shares in zip(tables, looks / looks.sum(axis=1, keepdims=True), strict=True):
        printed = table.locator(".sh").all_inner_texts()
        assert printed == ["<1%" if share < 0.005 else f"{100 * share:.0f}%" for share in shares]


def test_the_summary_agrees_with_the_sections(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("two")))
    summary = page.locator(".sum a")
    assert [link.get_attribute("href") for link in summary.all()] == [
        "#shown",
        "#learned",
        "#working",
        "#fair",
        "#healthy",
    ]
    visits, clicks = (sum(map(sum, TWO.series[name][-2:])) for name in ("visits", "clicks"))
    assert summary.nth(2).locator(".v").inner_text() == f"{clicks / visits:.3f}"
    assert f"The last hour had {clicks / visits:.3f} clicks per visit." in page.inner_text("#working")
    price = TWO.dashboard["treatments"][1]["price"]["estimate"]
    assert summary.nth(3).locator(".v").inner_text() == f"{100 * price:.{1 if price >= 0.01 else 2}f}%"
    assert "would be the price of equality (utilitarian)" in summary.nth(3).inner_text()
    assert summary.nth(1).locator(".c").inner_text() == (
        "probability that this is the best ranking; expected loss: <0.1 to 3.4 clicks per 1,000 visits"
    )
    assert summary.nth(4).locator(".v").inner_text() == "1 of 6"


def test_values_of_several_clicks_may_exceed_one(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("several")))
    assert max(SEVERAL.dashboard["treatments"][0]["value"]) > 1
    assert max(number_in(row[3]) for row in rows_of(page, "clicks")) > 1
    assert page.locator("#working h3").first.inner_text() == "Clicks per visit"
    learned, shown = page.inner_text("#learned"), page.inner_text("#shown")
    assert "probability of a look" in learned
    assert "share of looks" not in learned
    assert "of looks" not in shown
    assert "the largest is taken to be 100%" in shown
