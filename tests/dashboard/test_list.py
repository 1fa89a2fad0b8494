"""The list of surfaces says when the service is slow or silent, and goes on when it is back.

The page's clock is the test's: time passes when the test says so.
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


def test_slow_answers_are_said_to_be_slow(page: Page, server: Fixture) -> None:
    server.held.add("/v1/surfaces")
    page.goto(server.address)
    expect(page.locator("main")).to_contain_text("Loading…")
    pass_time(page, 11)
    expect(page.locator("main")).to_contain_text("The service answers slowly.")
    server.held.clear()
    expect(page.locator(".surfaces tbody tr")).to_have_count(1)


def test_silence_is_said_once_while_a_question_hangs_and_ends(page: Page, server: Fixture) -> None:
    page.goto(server.address)
    expect(page.locator("#updated")).to_contain_text("Live")
    server.held.add("/v1/access")
    pass_time(page, 17)
    expect(page.locator("#updated")).to_contain_text("no answer for")
    expect(page.locator("#announcement")).to_have_text("The service is silent.")
    expect(page.locator(".banner")).to_have_count(0)
    pass_time(page, 20)
    expect(page.locator(".banner")).to_contain_text("Showing the state of")
    expect(page.locator("#announcement")).to_have_text("The service does not answer.")
    page.evaluate(
        """() => {
          window.said = 0;
          const told = new MutationObserver(() => (window.said += 1));
          told.observe(document.getElementById("announcement"), { childList: true, characterData: true });
        }"""
    )
    pass_time(page, 15)
    assert page.evaluate("window.said") == 0
    expect(page.locator(".surfaces tbody tr")).to_have_count(1)  # it stays
    server.held.clear()
    pass_time(page, 6)
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator(".banner")).to_have_count(0)


def test_a_question_that_hangs_is_given_up_and_asked_again(page: Page, server: Fixture) -> None:
    server.held.add("/v1/surfaces")
    page.goto(server.address)
    pass_time(page, 31)
    expect(page.locator(".none.bad")).to_contain_text("The service does not answer.")
    pass_time(page, 6)
    wait_until(lambda: server.asked.count("GET /v1/surfaces") == 2)  # it was sent, and arrives soon
