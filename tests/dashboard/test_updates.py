"""Updates in place: focus, scroll positions, open tables, cursors and input are kept."""

from collections.abc import Iterator
from copy import deepcopy

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import make
from helpers.dashboard_page import drawn, evaluate_module, settled
from helpers.dashboard_server import Fixture, serving
from playwright.sync_api import Page, expect


@pytest.fixture
def server() -> Iterator[Fixture]:
    items = tuple(f"Item {number}" for number in range(20))
    with serving(make("ads"), make("shelf", items=items, n_positions=3)) as fixture:
        yield fixture


def rounds(page: Page) -> str:
    return page.locator(".facts").inner_text()


def update(server: Fixture, page: Page, name: str, **changes: object) -> None:
    """Change the document, and wait until the page shows it."""
    count = server.made[name].dashboard["rounds"] + 1000
    server.change(name, rounds=count, **changes)
    expect(page.locator(".facts")).to_contain_text(f"{count:,} visits")
    drawn(page)


def shifted(server: Fixture, name: str) -> list[list[dict[str, float]]]:
    """Return slightly higher estimates of items."""
    rows = deepcopy(server.made[name].dashboard["items"])
    for row in rows:
        for one in row:
            for end in ("estimate", "low", "high"):
                one[end] = min(1.0, one[end] + 0.01)
    return rows


def test_numbers_change_in_chart_and_table(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    page.locator("details[data-table=items] summary").click()
    before = page.locator("details[data-table=items] tbody").inner_text()
    drawing = page.locator("[data-chart=items] svg").inner_html()
    update(server, page, "ads", items=shifted(server, "ads"))
    assert page.locator("details[data-table=items] tbody").inner_text() != before
    assert page.locator("[data-chart=items] svg").inner_html() != drawing
    value = server.made["ads"].dashboard["items"][0][0]["estimate"]
    assert f"{value:.3f}" in page.locator("details[data-table=items] tbody tr").first.inner_text()


def test_focus_scroll_open_tables_and_cursor_are_kept(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads"), height=500))
    for key in ("items", "clicks"):
        page.locator(f"details[data-table={key}] summary").click()
    inner = page.locator("details[data-table=clicks] .tw")
    expect(inner).to_be_visible()
    inner.evaluate("box => { box.scrollTop = 200 }")
    chart = page.locator("[data-chart=clicks]")
    chart.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    said = page.locator("[data-readout=clicks]").inner_text()
    assert said == chart.get_attribute("aria-valuetext")
    page.evaluate("scrollTo(0, 1234)")
    element = page.evaluate_handle("document.activeElement")
    for _ in range(3):
        update(server, page, "ads", items=shifted(server, "ads"))
        assert page.evaluate("old => document.activeElement === old", element)
        assert page.evaluate("scrollY") == 1234
        assert inner.evaluate("box => box.scrollTop") == 200
        assert page.locator("details[data-table=items]").evaluate("details => details.open")
        assert page.locator("[data-readout=clicks]").inner_text() == said
        assert page.locator("[data-chart=clicks] .cu").count() == 1
    assert not page.locator("details[data-table=regret]").evaluate("details => details.open")


def test_the_cursor_stays_at_its_time_when_buckets_close(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    chart = page.locator("[data-chart=regret]")
    chart.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    said = page.locator("[data-readout=regret]").inner_text()
    for count in range(48, 51):
        server.close_bucket("ads")
        expect(chart).to_have_attribute("aria-valuemax", str(count))
        assert page.locator("[data-readout=regret]").inner_text().endswith(said)  # the day may come before it
        assert chart.get_attribute("aria-valuenow") == "43"


def test_a_bucket_that_closes_before_the_series_arrives_is_kept(server: Fixture, open_page: OpenPage) -> None:
    series = "/v1/surfaces/ads/series"
    server.held.add(series)
    page = open_page(server.page("ads"))
    chart = page.locator("[data-chart=clicks]")
    with page.expect_response(f"**{series}"):
        expect(page.locator("#updated")).to_contain_text("Live")
        while f"GET {series}" not in server.requests:
            drawn(page)
        server.close_bucket("ads")
        expect(chart).to_have_attribute("aria-valuemax", "0")
        server.held.clear()
    expect(chart).to_have_attribute("aria-valuemax", "48")


def test_input_and_selections_are_kept(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("shelf")))
    page.get_by_role("radio", name="Female").check(force=True)
    search = page.get_by_label("Other items")
    search.press_sequentially("item 1")
    search.press("ArrowLeft")
    drawn(page)
    marks = page.locator("[data-chart=items] [data-mark]").count()
    update(server, page, "shelf", items=shifted(server, "shelf"))
    expect(search).to_be_focused()
    assert search.input_value() == "item 1"
    assert search.evaluate("field => field.selectionStart") == 5
    assert page.locator("[data-chart=items] [data-mark]").count() == marks
    assert page.get_by_role("radio", name="Female").is_checked()
    assert "Click rate of Female" in (page.locator("[data-chart=clicks]").get_attribute("aria-label") or "")


@pytest.mark.parametrize(
    ("place", "label"),
    [("items", "Names"), ("ranking=", "Ranking id"), ("ranking={}", "Ranking id")],
)
def test_forms_keep_focus_and_input(place: str, label: str, server: Fixture, open_page: OpenPage) -> None:
    ranking = server.made["ads"].dashboard["latest_rankings"][0]["id"]
    page = open_page(f"{server.page('ads')}#{place.format(ranking)}")
    expect(page.locator(".items, .form").first).to_be_visible()
    if place.endswith("}"):
        expect(page.locator(".facts-list")).to_be_visible()
    typed = page.get_by_label(label)
    typed.press_sequentially("one")
    page.evaluate("document.activeElement.addEventListener('blur', () => { window.blurred = true })")
    for minute in (31, 32):
        server.change("ads", as_of=f"2026-03-03T14:{minute}:00Z")
        expect(page.locator("#updated")).to_contain_text(f"14:{minute}:00")
        expect(typed).to_be_focused()
    assert page.evaluate("window.blurred") is None
    assert typed.input_value() == "one"


def test_selected_text_stays_selected(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#learned h2'))")
    update(server, page, "ads", items=shifted(server, "ads"))
    assert page.evaluate("String(getSelection())") == "What has been learned?"


def test_the_latest_rankings_are_paused_while_they_are_used(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    link = page.locator(".latest a").nth(2)
    address = link.get_attribute("href")
    link.focus()
    recent = server.made["ads"].dashboard["latest_rankings"]
    fresh = [{**recent[0], "id": f"fresh-ranking-{number}"} for number in range(8)]
    update(server, page, "ads", latest_rankings=fresh)
    expect(link).to_be_focused()
    assert link.get_attribute("href") == address
    assert "paused while you use the table" in page.inner_text("#shown")
    page.get_by_role("button", name="Pause").focus()
    update(server, page, "ads")
    assert page.locator(".latest a").first.get_attribute("href") == "#ranking=fresh-ranking-0"


def test_elements_are_updated_and_not_replaced(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    page.evaluate("window.before = new Set(document.querySelectorAll('main *'))")
    update(server, page, "ads", items=shifted(server, "ads"))
    new = page.evaluate("[...document.querySelectorAll('main *')].filter(e => !window.before.has(e)).length")
    assert new == 0


SERIES = {
    "start": "2026-03-02T14:00:00Z",
    "bucket_seconds": 60,
    "visits": [[1], [2], [3]],
    "regret": [1, 2, 3],
    "events": [{"at": "2026-03-02T14:01:00Z", "text": "service started"}],
}


def test_closed_buckets_are_merged(server: Fixture, open_page: OpenPage) -> None:
    page = open_page(server.address)

    def merge(added: dict[str, object]) -> dict[str, object] | None:
        return evaluate_module(page, "time-series.js", "m.merge(...a)", [SERIES, added])

    later = {
        "start": "2026-03-02T14:02:00Z",
        "bucket_seconds": 60,
        "visits": [[7], [8]],
        "regret": [4, 5],
        "events": [],
    }
    merged = merge(later)
    assert merged is not None
    assert merged["visits"] == [[1], [2], [7], [8]]
    assert merged["regret"] == [1, 2, 4, 5]
    assert merged["start"] == SERIES["start"]
    assert merged["events"] == SERIES["events"]
    assert merge({**later, "start": "2026-03-02T14:09:00Z"}) is None  # some are missing between
    older = {**later, "start": "2026-03-02T14:01:00Z", "visits": [[9]], "regret": [9]}
    kept = merge(older)
    assert kept is not None
    assert kept["visits"] == [[1], [9], [3]]  # what is older takes nothing away
    first = {**later, "start": "2026-03-02T13:59:00Z", "visits": [[5], [6], [7]], "regret": [5, 6, 7]}
    joined = merge(first)
    assert joined is not None
    assert joined["visits"] == [[5], [1], [2], [3]]
    assert joined["start"] == first["start"]
    wider = {**later, "bucket_seconds": 120}
    assert merge(wider) == wider
    assert merge(SERIES) == SERIES


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_are_parsed_from_chunks_of_any_size(size: int, server: Fixture, open_page: OpenPage) -> None:
    text = ': alive\n\nevent: state\ndata: {"name": "é"}\n\n'
    text += 'event: series\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: alive\n'
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events = evaluate_module(
        open_page(server.address),
        "event-stream.js",
        "(() => { const all = []; const parse = m.eventParser((...event) => all.push(event));"
        " a.forEach(parse); return all; })()",
        pieces,
    )
    assert events == [["state", {"name": "é"}], ["series", {"a": 1}]]


def test_compilation_is_shown_until_it_ends(server: Fixture, open_page: OpenPage) -> None:
    page = settled(open_page(server.page("ads")))
    expect(page.locator(".banner")).to_have_count(0)
    for compiling, text in (("this-surface", "for this surface"), ("another-surface", "for another surface")):
        update(server, page, "ads", compiling=compiling)
        expect(page.locator(".banner")).to_contain_text(f"The service is compiling code {text}.")
        expect(page.locator("#announcement")).to_contain_text("compiling")
    update(server, page, "ads", compiling=None)
    expect(page.locator(".banner")).to_have_count(0)


def test_the_list_says_that_surfaces_are_compiled(server: Fixture, open_page: OpenPage) -> None:
    server.is_loading = True
    page = open_page(server.address)
    expect(page.locator("main")).to_contain_text("The service is compiling code. More surfaces may follow.")
    expect(page.locator(".surfaces tbody tr")).to_have_count(2)
    expect(page.locator("main")).not_to_contain_text("There are no surfaces yet")
