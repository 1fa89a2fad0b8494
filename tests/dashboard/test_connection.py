"""The page says when the service is silent, goes on when it is back, and asks no more than it must.

The page's clock is the test's: time passes when the test says so.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from browser import OpenPage, watch
from dashboard_documents import make
from dashboard_page import settled
from dashboard_server import Fixture, serving
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def server() -> Iterator[Fixture]:
    with serving(make("ads")) as fixture:
        yield fixture


@pytest.fixture
def page(browser: Browser, server: Fixture) -> Iterator[Page]:
    """Open the page under a clock of its own; it may complain of what the service does, and of no more."""
    complaints: list[str] = []
    with browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
        opened = context.new_page()
        watch(opened, complaints)
        opened.clock.install(time=1_773_000_000)
        opened.goto(server.page("ads"))
        yield opened
    away = (f"failed: {server.address}/v1/", "console: Failed to load resource:")
    assert [complaint for complaint in complaints if not complaint.startswith(away)] == []


def pass_time(page: Page, seconds: int) -> None:
    """Let time pass in steps, so that answers to what a timer asked arrive before the next one."""
    for _ in range(seconds):
        page.clock.run_for(1000)


def asked(server: Fixture, path: str) -> int:
    return sum(1 for request in server.asked if request == f"GET /v1/surfaces/ads/{path}")


def test_silence_is_shown_and_ends(page: Page, server: Fixture) -> None:
    settled(page)
    value = page.locator("#shown tfoot b").first.inner_text()
    server.stop()
    expect(page.locator("#updated")).to_contain_text("Live")
    pass_time(page, 12)
    expect(page.locator("#updated")).to_contain_text("no answer for")
    expect(page.locator("#healthy .a")).to_contain_text("Not known: the service has not answered")
    expect(page.locator(".sum .v").last).to_have_text("Unknown")
    assert set(page.locator("#healthy .st").all_inner_texts()) == {"Unknown"}
    expect(page.locator(".banner")).to_have_count(0)
    pass_time(page, 25)
    expect(page.locator(".banner")).to_contain_text("The service does not answer.")
    expect(page.locator(".banner")).to_contain_text("Showing the state of 14:30:07")
    expect(page.locator(".banner")).to_contain_text("Trying again")
    expect(page.locator("#announcement")).to_have_text("The service does not answer.")
    assert page.locator("#shown tfoot b").first.inner_text() == value  # figures stay
    server.start()
    pass_time(page, 32)
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator("#announcement")).to_have_text("")
    expect(page.locator("#healthy .a")).not_to_contain_text("Not known")


def test_a_short_restart_is_not_worth_a_banner(page: Page, server: Fixture) -> None:
    settled(page)
    server.stop()
    pass_time(page, 1)
    server.start()
    pass_time(page, 8)
    server.change("ads", rounds=77_777)
    expect(page.locator(".facts")).to_contain_text("77,777 visits")
    expect(page.locator(".banner")).to_have_count(0)


def test_pausing_stops_everything(page: Page, server: Fixture) -> None:
    settled(page)
    button = page.get_by_role("button", name="Pause")
    button.click()
    expect(page.locator("#updated")).to_have_text("Paused at 14:30:07 UTC")
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    before = len(server.asked)
    server.change("ads", rounds=60_000)
    pass_time(page, 120)
    assert len(server.asked) == before
    expect(page.locator(".facts")).to_contain_text("51,209 visits")
    expect(page.locator(".banner")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".facts")).to_contain_text("60,000 visits")
    expect(page.locator("#updated")).to_contain_text("Live")


def set_hidden(page: Page, state: str) -> None:
    page.evaluate(
        """state => {
          Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def test_a_hidden_tab_asks_nothing(page: Page, server: Fixture) -> None:
    settled(page)
    set_hidden(page, "hidden")
    before = len(server.asked)
    server.change("ads", rounds=60_000)
    pass_time(page, 90)
    assert len(server.asked) == before
    set_hidden(page, "visible")
    expect(page.locator(".facts")).to_contain_text("60,000 visits")
    expect(page.locator(".banner")).to_have_count(0)


# The page's waits as it asks for them: what passes until an answer is there is not among them.
_NOTE_WAITS = """
  const wait = window.setTimeout;
  window.waits = [];
  window.setTimeout = (work, delay, ...rest) => {
    if ([5000, 10000, 30000, 60000].includes(delay)) window.waits.push(delay / 1000);
    return wait(work, delay, ...rest);
  };
"""


def test_without_a_stream_it_asks_ever_less_often_while_nothing_changes(
    browser: Browser, server: Fixture
) -> None:
    server.streams = False
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install(time=1_773_000_000)
        page.add_init_script(_NOTE_WAITS)
        page.goto(server.page("ads"))
        settled(page)

        def waits(count: int) -> list[int]:
            for _ in range(1000):
                found: list[int] = page.evaluate("window.waits")
                if len(found) >= count:
                    return found
                pass_time(page, 1)
            pytest.fail(f"it waited only {found}")

        assert waits(5) == [5, 10, 30, 60, 60]
        before = asked(server, "dashboard")
        assert before == 5
        assert asked(server, "series") == 1  # nothing changed
        server.change("ads", rounds=60_000)
        assert waits(7) == [5, 10, 30, 60, 60, 5, 10]  # something did
        expect(page.locator(".facts")).to_contain_text("60,000 visits")
        expect(page.locator(".banner")).to_have_count(0)


def test_slow_answers_are_said_to_be_slow(page: Page, server: Fixture) -> None:
    settled(page)
    server.slow.set()
    page.goto(server.page("ads") + "?again")
    expect(page.locator("main")).to_contain_text("Loading…")
    assert page.locator("h2").count() == 5
    assert page.locator(".sk").first.evaluate("frame => frame.clientHeight") >= 200
    pass_time(page, 11)
    expect(page.locator("main")).to_contain_text("The service answers slowly.")
    server.slow.clear()
    expect(page.locator("#updated")).to_contain_text("Live")


def test_a_panel_fails_by_itself(page: Page, server: Fixture) -> None:
    settled(page)
    server.broken_series = True
    page.goto(server.page("ads") + "?again")
    expect(page.locator("#working .none.bad")).to_contain_text("This panel failed.")
    expect(page.locator("#working .none.bad")).to_contain_text("Request 5f2c81.")
    expect(page.locator("#shown tfoot b").first).to_be_visible()
    expect(page.locator(".none.bad")).to_have_count(1)


def test_a_document_that_makes_no_sense_breaks_one_panel(server: Fixture, open_page: OpenPage) -> None:
    server.made["ads"].dashboard["displays"] = None
    page = open_page(server.page("ads"))
    expect(page.locator("#fair .none.bad")).to_contain_text("This panel failed.")
    expect(page.locator("#shown tfoot b").first).to_be_visible()
    expect(page.locator("#working .plot").first).to_be_visible()


def test_an_unknown_surface_is_said_to_be_unknown(page: Page, server: Fixture) -> None:
    page.goto(server.page("nowhere"))
    expect(page.locator("h1")).to_have_text("nowhere")
    expect(page.locator("main")).to_contain_text("There is no such surface.")
    page.get_by_role("link", name="All surfaces").click()
    expect(page.locator("h1")).to_have_text("Surfaces")


def test_all_that_is_asked_for_is_the_services_own(page: Page, server: Fixture) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(server.page("ads") + "?again")
    settled(page)
    assert len(addresses) > 30
    assert {f"{urlsplit(one).scheme}://{urlsplit(one).netloc}" for one in addresses} == {server.address}
