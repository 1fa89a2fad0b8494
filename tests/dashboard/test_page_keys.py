"""API keys in the dashboard."""

from collections.abc import Iterator

import pytest
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
        yield opened


def give_key(page: Page, key: str) -> None:
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Use this key").click()


def test_the_key_is_stored_for_the_tab_only(page: Page, server: Fixture) -> None:
    server.rights = {"br_reader": ("read",), "br_pages": ("rank",)}
    page.goto(server.page("ads"))
    expect(page.locator("h1")).to_have_text("API key required")
    give_key(page, "br_wrong")
    expect(page.get_by_role("alert")).to_contain_text("does not have the right to read")
    give_key(page, "br_pages")
    expect(page.get_by_role("alert")).to_be_visible()
    give_key(page, "br_reader")
    settled(page)
    assert page.get_by_role("link", name="Add or retire items").count() == 0
    assert page.evaluate("Object.values(localStorage)") == []
    page.goto(server.address)
    expect(page.locator(".surfaces tbody tr")).to_have_count(1)
    assert page.get_by_role("link", name="Create a surface").count() == 0
    page.goto(f"{server.address}/#create")
    expect(page.locator("h1")).to_have_text("Surfaces")
    page.get_by_role("button", name="Remove the API key").click()
    expect(page.locator("h1")).to_have_text("API key required")


def test_a_page_resumes_with_another_key_after_a_revocation(page: Page, server: Fixture) -> None:
    server.rights = {"br_old": ("read",)}
    page.goto(server.page("ads"))
    give_key(page, "br_old")
    settled(page)
    server.rights = {"br_new": ("read", "administer")}
    server.stop()
    server.start()
    pass_time(page, 3)
    expect(page.locator("h1")).to_have_text("API key required")
    give_key(page, "br_new")
    server.change("ads", rounds=77_777)
    expect(page.locator(".facts")).to_contain_text("77,777 visits")
    expect(page.get_by_role("link", name="Add or retire items")).to_be_visible()


def test_rights_are_requested_again_after_an_error(page: Page, server: Fixture) -> None:
    page.route("**/v1/access", lambda route: route.abort())
    page.goto(server.page("ads"))
    settled(page)
    assert page.get_by_role("link", name="Add or retire items").count() == 0
    page.unroute("**/v1/access")
    server.change("ads", rounds=60_000)
    expect(page.get_by_role("link", name="Add or retire items")).to_be_visible()
