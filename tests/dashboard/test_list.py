"""The list of surfaces during outages of the service.

The clock of the page is controlled by the test.
"""

from collections.abc import Iterator

import pytest
from helpers.dashboard_documents import make
from helpers.dashboard_page import clocked_page, pass_time
from helpers.dashboard_server import Fixture, serving
from helpers.live import wait_until
from playwright.sync_api import Browser, Page, expect


@pytest.fixture
def server() -> Iterator[Fixture]:
    with serving(make("ads")) as fixture:
        yield fixture


@pytest.fixture
def page(browser: Browser, server: Fixture) -> Iterator[Page]:
    with clocked_page(browser, server) as opened:
        yield opened


def test_slow_responses_are_reported(page: Page, server: Fixture) -> None:
    server.held.add("/v1/surfaces")
    page.goto(server.address)
    expect(page.locator("main")).to_contain_text("Loading…")
    pass_time(page, 11)
    expect(page.locator("main")).to_contain_text("The service is slow to respond.")
    server.held.clear()
    expect(page.locator(".surfaces tbody tr")).to_have_count(1)


def test_a_silent_service_is_announced_once(page: Page, server: Fixture) -> None:
    page.goto(server.address)
    expect(page.locator("#updated")).to_contain_text("Live")
    server.held.add("/v1/access")
    pass_time(page, 17)
    expect(page.locator("#updated")).to_contain_text("no response for")
    expect(page.locator("#announcement")).to_have_text("No response from the service.")
    expect(page.locator(".banner")).to_have_count(0)
    pass_time(page, 20)
    expect(page.locator(".banner")).to_contain_text("Showing data from")
    expect(page.locator("#announcement")).to_have_text("The service does not respond.")
    page.evaluate(
        """() => {
          window.said = 0;
          const observer = new MutationObserver(() => (window.said += 1));
          observer.observe(document.getElementById("announcement"), { childList: true, characterData: true });
        }"""
    )
    pass_time(page, 15)
    assert page.evaluate("window.said") == 0
    expect(page.locator(".surfaces tbody tr")).to_have_count(1)  # it stays
    server.held.clear()
    pass_time(page, 6)
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_request_that_hangs_times_out_and_is_retried(page: Page, server: Fixture) -> None:
    server.held.add("/v1/surfaces")
    page.goto(server.address)
    pass_time(page, 31)
    expect(page.locator(".none.bad")).to_contain_text("The service does not respond.")
    pass_time(page, 6)
    wait_until(lambda: server.requests.count("GET /v1/surfaces") == 2)  # it was sent, and arrives soon
