"""Connection of the page: outages, restarts, polling and pausing.

The clock of the page is controlled by the test.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import make
from helpers.dashboard_page import clocked_page, pass_time, settled
from helpers.dashboard_server import Fixture, serving
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def server() -> Iterator[Fixture]:
    with serving(make("ads")) as fixture:
        yield fixture


@pytest.fixture
def page(browser: Browser, server: Fixture) -> Iterator[Page]:
    with clocked_page(browser, server) as opened:
        opened.goto(server.page("ads"))
        yield opened


def count_requests(server: Fixture, path: str) -> int:
    return sum(1 for request in server.requests if request == f"GET /v1/surfaces/ads/{path}")


def test_a_silent_service_is_shown_until_it_responds(page: Page, server: Fixture) -> None:
    settled(page)
    value = page.locator("#shown tfoot b").first.inner_text()
    server.stop()
    expect(page.locator("#updated")).to_contain_text("Live")
    pass_time(page, 12)
    expect(page.locator("#updated")).to_contain_text("no response for")
    expect(page.locator("#healthy .a")).to_contain_text("Unknown: the service has not responded")
    expect(page.locator(".sum .v").last).to_have_text("Unknown")
    assert set(page.locator("#healthy .st").all_inner_texts()) == {"Unknown"}
    expect(page.locator(".banner")).to_have_count(0)
    pass_time(page, 25)
    expect(page.locator(".banner")).to_contain_text("The service does not respond.")
    expect(page.locator(".banner")).to_contain_text("Showing data from 14:30:07")
    expect(page.locator(".banner")).to_contain_text("Retrying")
    expect(page.locator("#announcement")).to_have_text("The service does not respond.")
    assert page.locator("#shown tfoot b").first.inner_text() == value  # figures stay
    server.start()
    pass_time(page, 32)
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator("#announcement")).to_have_text("")
    expect(page.locator("#healthy .a")).not_to_contain_text("Unknown:")


def test_a_heartbeat_ends_a_silence(page: Page, server: Fixture) -> None:
    settled(page)
    server.muted.set()
    pass_time(page, 11)
    expect(page.locator("#healthy .a")).to_contain_text("Unknown: the service has not responded")
    server.muted.clear()  # nothing has changed meanwhile: there is no event
    expect(page.locator("#healthy .a")).not_to_contain_text("Unknown:")


def test_a_short_outage_shows_no_banner(page: Page, server: Fixture) -> None:
    settled(page)
    server.stop()
    pass_time(page, 1)
    server.start()
    pass_time(page, 8)
    server.change("ads", rounds=77_777)
    expect(page.locator(".facts")).to_contain_text("77,777 visits")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_restart_shows_a_banner_for_some_minutes(page: Page, server: Fixture) -> None:
    settled(page)
    expect(page.locator(".banner")).to_have_count(0)  # the last restart was hours ago
    server.made["ads"].series["events"].append({"at": "2026-03-03T14:29:50Z", "text": "service started"})
    server.stop()
    pass_time(page, 1)
    server.start()
    pass_time(page, 4)
    words = "The service restarted at 14:29:50. No acknowledged feedback was lost."
    expect(page.locator(".banner")).to_contain_text(words)
    expect(page.locator("#announcement")).to_have_text("The service restarted.")
    server.change("ads", as_of="2026-03-03T14:34:49Z")
    expect(page.locator("#updated")).to_contain_text("14:34:49")
    expect(page.locator(".banner")).to_have_count(1)
    server.change("ads", as_of="2026-03-03T14:34:50Z")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_dismissed_restart_banner_does_not_return(page: Page, server: Fixture) -> None:
    server.made["ads"].series["events"].append({"at": "2026-03-03T14:29:50Z", "text": "service started"})
    page.goto(server.page("ads") + "?again")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator("main")).to_be_focused()
    server.change("ads", rounds=60_000)
    expect(page.locator(".facts")).to_contain_text("60,000 visits")
    expect(page.locator(".banner")).to_have_count(0)
    server.made["ads"].series["events"].append({"at": "2026-03-03T14:30:01Z", "text": "service started"})
    server.close_bucket("ads")
    expect(page.locator(".banner")).to_contain_text("14:30:01")  # another one


def test_pausing_stops_all_requests(page: Page, server: Fixture) -> None:
    settled(page)
    button = page.get_by_role("button", name="Pause")
    button.click()
    expect(page.locator("#updated")).to_have_text("Paused at 14:30:07 UTC")
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    before = len(server.requests)
    server.change("ads", rounds=60_000)
    pass_time(page, 120)
    assert len(server.requests) == before
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


def test_a_hidden_tab_sends_no_requests(page: Page, server: Fixture) -> None:
    settled(page)
    set_hidden(page, "hidden")
    before = len(server.requests)
    server.change("ads", rounds=60_000)
    pass_time(page, 90)
    assert len(server.requests) == before
    set_hidden(page, "visible")
    expect(page.locator(".facts")).to_contain_text("60,000 visits")
    expect(page.locator(".banner")).to_have_count(0)


# Records the waits that the page requests, without the time of responses.
_NOTE_WAITS = """
  const wait = window.setTimeout;
  window.waits = [];
  window.setTimeout = (work, delay, ...rest) => {
    if ([5000, 10000, 30000, 60000].includes(delay)) window.waits.push(delay / 1000);
    return wait(work, delay, ...rest);
  };
"""


def test_polling_backs_off_while_nothing_changes(browser: Browser, server: Fixture) -> None:
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
        before = count_requests(server, "dashboard")
        assert before == 5
        assert count_requests(server, "series") == 1  # nothing changed
        server.change("ads", rounds=60_000)
        assert waits(7) == [5, 10, 30, 60, 60, 5, 10]  # something did
        expect(page.locator(".facts")).to_contain_text("60,000 visits")
        expect(page.locator(".banner")).to_have_count(0)


_COUNT_LISTENERS = """
  window.listening = 0;
  for (const [name, change] of [["addEventListener", 1], ["removeEventListener", -1]]) {
    const original = AbortSignal.prototype[name];
    AbortSignal.prototype[name] = function (...given) {
      window.listening += change;
      return original.apply(this, given);
    };
  }
"""


def test_waiting_does_not_leak_listeners(browser: Browser, server: Fixture) -> None:
    server.streams = False
    with browser.new_context() as context:
        page = context.new_page()
        page.clock.install(time=1_773_000_000)
        page.add_init_script(_COUNT_LISTENERS)
        page.goto(server.page("ads"))
        settled(page)
        before = page.evaluate("window.listening")
        while count_requests(server, "dashboard") < 4:
            pass_time(page, 1)
        assert page.evaluate("window.listening") <= before


def test_a_malformed_stream_is_ended(page: Page, server: Fixture) -> None:
    settled(page)
    server.broken_events = True
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/ads/events")):
        page.goto(server.page("ads") + "?again")
        settled(page)  # by asking


def test_slow_responses_are_reported(page: Page, server: Fixture) -> None:
    settled(page)
    server.slow.set()
    page.goto(server.page("ads") + "?again")
    expect(page.locator("main")).to_contain_text("Loading…")
    assert page.locator("h2").count() == 5
    assert page.locator(".sk").first.evaluate("frame => frame.clientHeight") >= 200
    pass_time(page, 11)
    expect(page.locator("main")).to_contain_text("The service is slow to respond.")
    server.slow.clear()
    expect(page.locator("#updated")).to_contain_text("Live")


def test_an_error_of_the_series_affects_one_panel(page: Page, server: Fixture) -> None:
    settled(page)
    server.broken_series = True
    page.goto(server.page("ads") + "?again")
    expect(page.locator("#working .none.bad")).to_contain_text("This panel failed.")
    expect(page.locator("#working .none.bad")).to_contain_text("Request 5f2c81.")
    expect(page.locator("#shown tfoot b").first).to_be_visible()
    expect(page.locator(".none.bad")).to_have_count(1)


def test_a_malformed_document_affects_one_panel(server: Fixture, open_page: OpenPage) -> None:
    server.made["ads"].dashboard["displays"] = None
    page = open_page(server.page("ads"))
    expect(page.locator("#fair .none.bad")).to_contain_text("This panel failed.")
    expect(page.locator("#shown tfoot b").first).to_be_visible()
    expect(page.locator("#working .plot").first).to_be_visible()


def test_an_unknown_surface_is_reported(page: Page, server: Fixture) -> None:
    page.goto(server.page("nowhere"))
    expect(page.locator("h1")).to_have_text("nowhere")
    expect(page.locator("main")).to_contain_text("This surface does not exist.")
    page.get_by_role("link", name="All surfaces").click()
    expect(page.locator("h1")).to_have_text("Surfaces")


def test_a_surface_that_is_created_later_is_found(page: Page, server: Fixture) -> None:
    page.goto(server.page("later"))
    expect(page.locator("main")).to_contain_text("This surface does not exist.")
    server.made["later"] = make("later")
    pass_time(page, 31)
    settled(page)


def test_all_requests_go_to_the_service(page: Page, server: Fixture) -> None:
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(server.page("ads") + "?again")
    settled(page)
    assert len(addresses) > 30
    assert {f"{urlsplit(one).scheme}://{urlsplit(one).netloc}" for one in addresses} == {server.address}
