"""Accessibility of the dashboard: keyboard, screen reader, contrast and themes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import make
from helpers.dashboard_page import readouts, rows_of, settled
from helpers.dashboard_server import Fixture, serving
from helpers.page_measures import accessibility_findings
from playwright.sync_api import Page, expect

Scheme = Literal["light", "dark"]
SIX = ("New", "Returning", "Member", "Guest", "Staff", "Press")
MADE = (
    make("two"),
    make("three", types=SIX[:3], n_positions=3, treatment="equal", utility="nash"),
    make("six", types=SIX, items=tuple(f"Item {number}" for number in range(40)), n_positions=4, truth=False),
    make("empty", rounds=0),
)
in_schemes = pytest.mark.parametrize("scheme", ["light", "dark"])

# Returns the contrast of text or fill to the background; a canvas converts colours to RGB.
_CONTRASTS = """elements => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const brightness = colour => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  };
  const page = getComputedStyle(document.body).backgroundColor;
  return elements.map(element => {
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    const [a, b] = (drawn ? [style.fill, page] : [style.color, style.backgroundColor]).map(brightness);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""

# Returns whether the focused element, or its label if it is hidden, has an outline.
_OUTLINE = """() => {
  const element = document.activeElement;
  const shown = +getComputedStyle(element).opacity ? element : element.closest("label");
  const { outlineStyle, outlineWidth } = getComputedStyle(shown);
  return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Fixture]:
    with serving(*MADE) as fixture:
        yield fixture


# Each surface once, each width and theme twice; the campaign has the opposite widths.
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("two", 1440, "light"),
        pytest.param("two", 390, "dark", marks=pytest.mark.campaign),
        ("three", 1440, "dark"),
        pytest.param("three", 390, "light", marks=pytest.mark.campaign),
        pytest.param("six", 1440, "dark", marks=pytest.mark.campaign),
        ("six", 390, "light"),
        pytest.param("empty", 1440, "light", marks=pytest.mark.campaign),
        ("empty", 390, "dark"),
    ],
)
def test_axe_finds_nothing_on_a_surface(
    name: str, width: int, scheme: Scheme, server: Fixture, open_page: OpenPage
) -> None:
    page = settled(open_page(server.page(name), width=width, scheme=scheme))
    if name != "empty":
        rows_of(page, "treatments")  # opens it; all tables behind charts are made alike
        page.locator("[data-chart=clicks]").focus()
    assert accessibility_findings(page) == []


@pytest.mark.parametrize(
    ("view", "width", "scheme"),
    [
        ("/", 1440, "light"),
        pytest.param("/", 390, "dark", marks=pytest.mark.campaign),
        pytest.param("/#create", 1440, "light", marks=pytest.mark.campaign),
        ("/#create", 390, "dark"),
        ("/surfaces/two#items", 1440, "light"),
        pytest.param("/surfaces/two#items", 390, "dark", marks=pytest.mark.campaign),
        pytest.param("ranking", 1440, "light", marks=pytest.mark.campaign),
        ("ranking", 390, "dark"),
    ],
)
def test_axe_finds_nothing_in_other_views(
    view: str, width: int, scheme: Scheme, server: Fixture, open_page: OpenPage
) -> None:
    ranking = server.made["three"].dashboard["latest_rankings"][0]["id"]
    path = f"/surfaces/three#ranking={ranking}" if view == "ranking" else view
    page = open_page(server.address + path, width=width, scheme=scheme)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Loading…")
    assert accessibility_findings(page) == []


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("three", "light"),
        ("six", "dark"),
        pytest.param("three", "dark", marks=pytest.mark.campaign),
        pytest.param("six", "light", marks=pytest.mark.campaign),
    ],
)
def test_numbers_have_contrast_on_the_darkest_cell_of_each_type(
    name: str, scheme: Scheme, server: Fixture, shared_page: OpenPage
) -> None:
    page = settled(shared_page(server.page(name), scheme=scheme))
    assert page.locator(".heat td").count() > 20
    lowest = min(page.locator(".heat tbody td:not(.sh)").evaluate_all(_CONTRASTS))
    assert lowest >= 4.5


@in_schemes
def test_markers_have_contrast(scheme: Scheme, server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("six"), scheme=scheme))
    lowest = min(page.locator("#learned .key .mk").evaluate_all(_CONTRASTS))
    assert lowest >= 4.5


def test_the_theme_is_stored(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("two"), scheme="light"))
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.get_by_role("button", name="Theme: dark").count() == 1
    dark = page.evaluate(ground)
    assert dark != light
    page.goto(server.address)
    assert page.evaluate(ground) == dark


def tab_stops(page: Page) -> list[tuple[float, str]]:
    """Return the vertical position and the name of each element that Tab reaches, in order."""
    stops = []
    page.evaluate("document.body.focus(); getSelection().removeAllRanges()")
    for _ in range(200):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
              const element = document.activeElement;
              if (element === document.body) return null;
              const box = element.getBoundingClientRect();
              const label = element.getAttribute("aria-label") || element.innerText;
              const name = label || element.id || element.value;
              return [box.top + scrollY, box.height, name, element.getAttribute("data-chart")];
            }"""
        )
        if found is None:
            return stops
        assert page.evaluate(_OUTLINE), found
        stops.append((found[0], found[3] or found[2].strip().split("\\n")[0]))
    pytest.fail("Tab never reaches the end")


def test_tab_order_follows_the_page_and_focus_is_visible(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("two"), width=390))
    stops = tab_stops(page)
    names = [name for _, name in stops]
    assert names[0] == "Skip to the content"
    order = ["banditrank", "Pause", "positions", "items", "clicks", "exploration", "regret", "treatments"]
    assert [name for name in names if name in order] == order
    below_header = [top for top, name in stops if top > 300]
    assert all(after > before - 60 for before, after in pairwise(below_header))
    assert names[-1] == "Download JSON"


def test_the_skip_link_leads_to_the_content(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("two")))
    page.keyboard.press("Tab")
    assert page.locator(".skip").evaluate("link => link.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_arrow_keys_move_through_a_chart_and_the_readout_is_text(
    server: Fixture, shared_page: OpenPage
) -> None:
    page = settled(shared_page(server.page("two")))
    chart, reading = page.locator("[data-chart=clicks]"), page.locator("[data-readout=clicks]")
    assert chart.get_attribute("role") == "slider"
    resting = reading.inner_text()
    chart.focus()
    assert reading.inner_text() == resting  # the last bucket
    for key, place in (("ArrowLeft", 46), ("ArrowLeft", 45), ("ArrowRight", 46), ("PageUp", 40), ("Home", 0)):
        page.keyboard.press(key)
        assert chart.get_attribute("aria-valuenow") == str(place)
        assert reading.inner_text() == chart.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowLeft")
    assert chart.get_attribute("aria-valuenow") == "0"
    page.keyboard.press("End")
    assert chart.get_attribute("aria-valuenow") == "47"
    page.keyboard.press("Tab")
    assert page.locator("[data-chart=clicks] .cu").count() == 0
    assert reading.inner_text() == resting
    assert len(set(readouts(page, "items"))) == 10


def test_the_pointer_moves_the_same_cursor(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("two")))
    chart = page.locator("[data-chart=items]")
    chart.scroll_into_view_if_needed()
    idle = page.locator("[data-readout=items]").inner_text()
    for number, mark in enumerate(chart.locator("[data-mark] .mk").all()):
        mark.hover(force=True)
        assert chart.get_attribute("aria-valuenow") == str(number)
        assert page.locator("[data-readout=items]").inner_text() == chart.get_attribute("aria-valuetext")
    page.mouse.move(1, 1)
    assert page.locator("[data-readout=items]").inner_text() == idle


@pytest.mark.parametrize("made", MADE[:3], ids=lambda made: made.name)
def test_shapes_distinguish_user_types(made: object, server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page(made.name)))
    shapes = page.locator("#learned .key li svg .mk").evaluate_all(
        "marks => marks.map(m => m.tagName + (m.getAttribute('points') ?? ''))"
    )
    assert len(shapes) == len(set(shapes)) == len(made.dashboard["surface"]["user_types"])


def test_there_are_no_inline_styles_or_scripts(server: Fixture, shared_page: OpenPage) -> None:
    page = settled(shared_page(server.page("six")))
    assert page.locator("[style]").count() == 0
    assert page.locator("script:not([src]), style, [onclick], [onload]").count() == 0
