"""Connection of the page: outages, restarts, polling and pausing.

The clock of the page is controlled by the test.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from helpers.browser import OpenPage
from helpers.dashboard_documents import make
from helpers.dashboard_page import clocked_page, pass_time, rows_of, settled
from helpers.dashboard_server import Fixture, serving
from playwright.sync_api import Browser, Page, expect

from banditrank.dashboard._documents import UNKNOWN_ESTIMATES


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


UNKNOWN = dict.fromkeys(UNKNOWN_ESTIMATES)
BASIS = {"at": "2026-03-03T14:30:07Z", "version": 12, "rounds": 1}


def test_figures_are_live_while_estimates_are_compiled(page: Page, server: Fixture) -> None:
    """Finding 13: counts are shown at once, and what is not known yet is said to be compiled, never 0."""
    server.change(
        "ads",
        **UNKNOWN,
        estimated_from=None,
        compiling="this-surface",
        compiling_seconds=23.0,
        rounds=1_836,
    )
    page.goto(server.page("ads") + "?again")
    expect(page.locator(".facts")).to_contain_text("1,836 visits counted")
    expect(page.locator("#updated")).to_have_text("Updated 14:30:07 UTC, no estimates yet")
    expect(page.locator(".banner")).to_contain_text("The service is compiling code for this surface.")
    expect(page.locator(".banner")).to_contain_text("It started 23 s ago.")
    expect(page.locator(".banner")).to_contain_text("1,836 visits were counted; there are no estimates yet.")
    assert page.locator(".sum .v").all_inner_texts()[:2] == ["–", "–"]
    for section in ("shown", "learned", "fair"):
        expect(page.locator(f"#{section} .a")).to_have_text("Not known yet.")
        expect(page.locator(f"#{section} .none").first).to_contain_text("compiling code for this surface")
    expect(page.locator("#working .a")).to_contain_text("The optimum is not known yet.")
    expect(page.locator("[data-chart=clicks]")).to_be_visible()  # what was counted
    expect(page.locator("[data-key=latest] tbody tr")).not_to_have_count(0)
    pass_time(page, 3)
    expect(page.locator(".banner")).to_contain_text("It started 26 s ago.")
    known = make("ads").dashboard
    server.change("ads", **known)
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator("#learned .a")).not_to_have_text("Not known yet.")


@pytest.mark.parametrize(("compiling", "words"), [(None, "being computed"), ("another-surface", "another")])
def test_estimates_that_are_computed_are_not_called_compiled(
    page: Page, server: Fixture, compiling: str | None, words: str
) -> None:
    """Finding 13: a page without estimates says what they wait for."""
    server.change("ads", **UNKNOWN, estimated_from=None, compiling=compiling)
    page.goto(server.page("ads") + "?again")
    expect(page.locator("#learned .none")).to_contain_text(words)
    expect(page.locator(".sum .c").first).to_have_text("being computed")


def test_old_estimates_are_not_live(page: Page, server: Fixture) -> None:
    """Finding 13: estimates of earlier counts say how old they are, also on a page that is loaded then."""
    server.change("ads", as_of="2026-03-03T14:30:11Z", version=13, rounds=2, estimated_from=BASIS)
    page.goto(server.page("ads") + "?again")
    expect(page.locator("#updated")).to_have_text("Live, updated 14:30:11 UTC")  # for a moment
    server.change("ads", as_of="2026-03-03T14:30:46Z", version=1_900, rounds=1_836)
    expect(page.locator("#updated")).to_have_text("Updated 14:30:46 UTC, estimates 39 s old")
    expect(page.locator(".facts")).to_contain_text("1,836 visits counted")
    expect(page.locator(".facts")).to_contain_text("estimates of 1 visit")
    expect(page.locator(".banner")).to_have_count(0)
    page.goto(server.page("ads") + "?another")
    expect(page.locator("#updated")).to_have_text("Updated 14:30:46 UTC, estimates 39 s old")
    pass_time(page, 3)
    expect(page.locator("#updated")).to_have_text("Updated 14:30:46 UTC, estimates 42 s old")
    pass_time(page, 20)
    expect(page.locator(".banner")).to_contain_text("The estimates are 1 min old.")
    expect(page.locator(".banner")).to_contain_text("The estimates are of 1 of 1,836 visits counted.")
    expect(page.locator("#announcement")).to_have_text("The estimates are old.")
    server.change("ads", estimated_from=BASIS | {"version": 1_900, "rounds": 1_836})
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator(".banner")).to_have_count(0)


def test_estimates_of_the_latest_counts_stay_live(page: Page, server: Fixture) -> None:
    """Finding 13: estimates do not get old while nothing is counted, however long ago they were computed."""
    server.change("ads", as_of="2026-03-03T15:30:07Z")
    expect(page.locator("#updated")).to_have_text("Live, updated 15:30:07 UTC")


def test_a_counts_event_updates_figures_and_keeps_estimates(page: Page, server: Fixture) -> None:
    """Finding 13: counts that arrive without estimates are shown beside the latest estimates."""
    settled(page)
    value = page.locator("#shown tfoot b").first.inner_text()
    server.count("ads", rounds=60_000, as_of="2026-03-03T14:30:31Z", version=13)
    expect(page.locator(".facts")).to_contain_text("60,000 visits counted")
    expect(page.locator("#updated")).to_have_text("Updated 14:30:31 UTC, estimates 24 s old")
    assert page.locator("#shown tfoot b").first.inner_text() == value


def test_what_is_not_known_is_not_zero(page: Page, server: Fixture) -> None:
    """Finding 13: a price without clicks, a share without rankings and an unknown reason are dashes."""
    known = make("ads").dashboard
    nothing = {"value": [0.0, 0.0], "low": [0.0, 0.0], "price": None}
    treatments = [each | nothing for each in known["treatments"]]
    displays = [known["displays"][0], [[0] * 5, [0] * 5]]
    items = [known["items"][0], [each | {"estimate": None} for each in known["items"][1]]]
    latest = [each | {"reason": None, "explored_items": []} for each in known["latest_rankings"]]
    server.change("ads", treatments=treatments, displays=displays, items=items, latest_rankings=latest)
    expect(page.locator("#fair dd").first).to_contain_text("–")
    expect(page.locator(".sum .v").nth(3)).to_have_text("–")
    expect(page.locator("#fair .heat tbody tr").first.locator("td").nth(2)).to_have_text("–")
    expect(page.locator("[data-key=latest] tbody tr").first).to_contain_text("–")
    expect(page.locator("[data-key=latest] tbody")).not_to_contain_text("Exploring")
    expect(page.locator("[data-key=card-1] tbody tr").first).to_contain_text("× –")
    expect(page.locator("[data-key=card-1] tbody tr").first).to_contain_text("= –")
    expect(page.locator("[data-mark=items-1-0] .lab")).to_have_text("–")
    expect(page.locator("[data-mark=items-1-0] .mk")).to_have_count(0)
    expect(page.locator("[data-mark=items-0-0] .mk")).to_have_count(1)
    assert rows_of(page, "items")[1][1] == "–"
