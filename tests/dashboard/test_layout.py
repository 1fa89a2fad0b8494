"""Layout of the dashboard: no page scrolls sideways."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import Made, make
from helpers.dashboard_page import drawn, settled
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
        table.locator("summary").click()
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


@pytest.mark.parametrize("names", [SIX[:3], ("new", "returning customers", "members")], ids=["short", "long"])
def test_exposure_of_three_types_at_three_positions_needs_no_scrolling(
    names: tuple[str, ...], open_page: OpenPage
) -> None:
    items = ("sneakers", "novels", "coffee", "headsets", "jackets", "plants")
    with serving(make("shelf", types=names, items=items, n_positions=3, treatment="equal")) as server:
        page = settled(open_page(server.page("shelf")))
        box = page.locator(".tw", has=page.locator(".heat"))
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
        page.set_viewport_size({"width": 320, "height": 900})
        drawn(page)
        if box.evaluate("box => box.scrollWidth > box.clientWidth"):
            assert "Share of each user type's rankings" in (box.get_attribute("aria-label") or "")


def test_many_items_can_be_searched(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("six-equal")))
    marks = page.locator("[data-chart=items-0] [data-mark]")
    on_show = set(server.made["six-equal"].dashboard["best_rankings"][0]["ranking"])
    assert marks.count() == len(on_show) == 4
    page.get_by_label("Other items").fill("item 3")
    expect(marks).to_have_count(len(on_show | {3, *range(30, 40)}))
    page.get_by_label("Other items").fill("nothing is called this")
    expect(marks).to_have_count(4)
