"""Layout of the dashboard: no page scrolls sideways."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import START, Made, make
from helpers.dashboard_page import drawn, rows_of, settled
from helpers.dashboard_server import Fixture, serving
from helpers.page_measures import heading_levels, overhanging, scrolls_sideways
from playwright.sync_api import Page, expect

SIX = ("New", "Returning", "Member", "Guest", "Staff", "Press")
FORTY = tuple(f"Item {number}" for number in range(40))
LONG = tuple(f"An extraordinarily long and winding name of an item, number {number}" for number in range(6))
MADE = (
    make("one", types=("everybody",), truth=False, retired=("Ad 2",)),
    make("two"),
    make("three", types=SIX[:3], n_positions=3, treatment="equal", utility="nash"),
    make("six", types=SIX, items=FORTY, n_positions=4, seed=5),
    make(
        "six-equal", types=SIX, items=FORTY, n_positions=4, treatment="equal", utility="maximin", truth=False
    ),
    make("thirty-types", types=tuple(f"Type {i}" for i in range(30)), truth=False),
    make("twenty-positions", items=FORTY, n_positions=20, treatment="equal"),
    make("empty", rounds=0),
    make(
        "l" * 64, types=("Users who came from a newsletter last week", "W" * 100), items=LONG, n_positions=3
    ),
)
WIDTHS = (320, 390, 820, 1440)
SECTIONS = [
    "What is shown now?",
    "What has been learned?",
    "Is it working?",
    "Is it fair?",
    "Is it healthy?",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Fixture]:
    with serving(*MADE) as fixture:
        yield fixture


def assert_fits(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function("innerWidth => window.innerWidth === innerWidth", arg=width)
    drawn(page)
    assert overhanging(page) == [], width
    assert not scrolls_sideways(page), width


# Surfaces between the extremes are left to the campaign.
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(
            made,
            marks=[pytest.mark.campaign] if made.name in {"two", "three", "six"} else [],
            id=made.name[:20],
        )
        for made in MADE
    ],
)
def test_every_surface_fits_every_width(made: Made, server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page(made.name)))
    assert page.title() == f"{made.name} · banditrank"
    assert page.locator("h1").all_inner_texts() == [made.name]
    assert page.locator("h2").all_inner_texts() == SECTIONS
    assert all(after <= before + 1 for before, after in pairwise(heading_levels(page)))
    for width in WIDTHS:
        assert_fits(page, width)
    tables = page.locator("details[data-table]")
    for table in tables.all():
        table.locator("summary").press("Enter")  # a click waits for frames, which a busy machine may not draw
    expect(page.locator("details[data-table] table")).to_have_count(tables.count())
    for width in WIDTHS:
        assert_fits(page, width)
    text = page.inner_text("body")
    for wrong in ("NaN", "undefined", "null", "Infinity", "[object", "!"):
        assert wrong not in text, wrong
    assert page.locator(".none.bad").count() == 0


@pytest.mark.parametrize(
    "width", [320, 1440, *(pytest.param(width, marks=pytest.mark.campaign) for width in (390, 820))]
)
def test_a_page_that_opens_narrow_fits(width: int, server: Fixture, open_page: OpenPage) -> None:
    assert_fits(settled(open_page(server.page("three"), width=width)), width)


@pytest.mark.parametrize("width", [320, 1440], ids=str)
def test_wide_fonts_fit(width: int, server: Fixture, open_page: OpenPage) -> None:
    page = open_page("about:blank", width=width)
    page.add_init_script(
        """
        const sheet = new CSSStyleSheet();
        sheet.replaceSync("body, button, select, input { font-family: monospace }");
        document.adoptedStyleSheets = [sheet];
        """
    )
    page.goto(server.page("three"))
    assert_fits(settled(page), width)


SHELF = ("sneakers", "novels", "coffee", "headsets", "jackets", "plants")
NAMES = ("new", "returning customers", "members")


@pytest.mark.parametrize(
    ("n_types", "n_positions", "n_tables"),
    [
        (2, 2, 1),
        (3, 4, 3),
        *(pytest.param(*sizes, marks=pytest.mark.campaign) for sizes in [(3, 2, 1), (3, 3, 3), (1, 6, 1)]),
    ],
)
def test_exposure_needs_no_scrolling(
    n_types: int, n_positions: int, n_tables: int, open_page: OpenPage
) -> None:
    shelf = make("shelf", types=NAMES[:n_types], items=SHELF, n_positions=n_positions, treatment="equal")
    with serving(shelf) as server:
        page = settled(open_page(server.page("shelf")))
        boxes = page.locator(".tw", has=page.locator(".heat"))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            drawn(page)
            overflows = boxes.evaluate_all("boxes => boxes.map(box => box.scrollWidth - box.clientWidth)")
            assert overflows == [0] * n_tables, width


def test_a_table_that_scrolls_has_a_name(open_page: OpenPage) -> None:
    with serving(make("shelf", types=NAMES, items=FORTY, n_positions=12)) as server:
        page = settled(open_page(server.page("shelf"), width=320))
        box = page.locator(".tw", has=page.locator(".heat")).first
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")
        assert box.get_attribute("tabindex") == "0"
        assert (box.get_attribute("aria-label") or "").endswith("at a position: new")


EVENTS = (
    "service started",
    "coffee and plants added, novels retired",
    "service started",
    "settings changed",
    "a very long name of an item that was added, and another one retired, and so on and on",
    "jackets added",
)


@pytest.mark.parametrize(
    "hours_apart", [0.35, 2.0, *(pytest.param(hours, marks=pytest.mark.campaign) for hours in (0.0, 4.5))]
)
def test_labels_of_events_do_not_overlap(hours_apart: float, open_page: OpenPage) -> None:
    shelf = make("shelf")
    shelf.series["events"] = [
        {"at": f"{START + timedelta(hours=0.1 + index * hours_apart):%Y-%m-%dT%H:%M:%SZ}", "text": text}
        for index, text in enumerate(EVENTS)
    ]
    with serving(shelf) as server:
        page = settled(open_page(server.page("shelf")))
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            drawn(page)
            chart = page.locator("[data-chart=clicks]")
            boxes = chart.locator("text").evaluate_all(
                "all => all.map(one => { const { left, right, top, bottom } = one.getBoundingClientRect();"
                " return [one.textContent, left, right, top, bottom, one.matches('.event')] })"
            )
            frame = chart.bounding_box()
            labels = [box for box in boxes if box[-1]]
            assert len(labels) >= 3, width
            for label, left, right, top, bottom, _ in labels:
                assert frame["x"] - 1 <= left < right <= frame["x"] + frame["width"] + 1, label
                for other in boxes:
                    is_apart = other[2] <= left or right <= other[1] or other[4] <= top or bottom <= other[3]
                    assert is_apart or other[:2] == [label, left], (width, label, other)
            assert chart.locator("line.rf").count() == len(EVENTS)
            rows = rows_of(page, "clicks")
        assert {text for text in EVENTS if any(text in row[-1] for row in rows)} == set(EVENTS)


def test_many_items_can_be_searched(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("six-equal")))
    marks = page.locator("[data-chart=items-0] [data-mark]")
    on_show = set(server.made["six-equal"].dashboard["best_rankings"][0]["ranking"])
    assert marks.count() == len(on_show) == 4
    page.get_by_label("Other items").fill("item 3")
    expect(marks).to_have_count(len(on_show | {3, *range(30, 40)}))
    page.get_by_label("Other items").fill("nothing is called this")
    expect(marks).to_have_count(4)
