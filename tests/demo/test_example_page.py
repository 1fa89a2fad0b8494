"""The page in ``examples/`` shows rankings of another origin, and reports clicks and visits without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from helpers.browser import TIMEOUT_SECONDS, OpenPage
from helpers.file_server import serving_files
from helpers.live import wait_until
from helpers.page_measures import accessibility_findings, contrasts, overhanging, scrolls_sideways
from helpers.running_service import Running, running
from helpers.servers import free_port
from playwright.sync_api import Browser, Page, Request, expect

from banditrank import Counts
from banditrank._demo.surfaces import search_ads

ROOT = Path(__file__).parents[2]
ITEMS = search_ads().problem.items
FEMALE = search_ads().problem.user_types.index("female")


@pytest.fixture(scope="module")
def example() -> Iterator[str]:
    """Serve the repository, and return the address of the page."""
    with serving_files(ROOT) as address:
        yield f"{address}/examples/page.html"


@contextmanager
def serving(**settings: Any) -> Iterator[Running]:
    with running(allow_origins=["loopback"], **settings) as service:
        assert service.ask("POST", "/v1/surfaces", search_ads().definition).status_code == 201
        yield service


@pytest.fixture
def service() -> Iterator[Running]:
    with serving() as service:
        yield service


@contextmanager
def page_of(browser: Browser, address: str) -> Iterator[Page]:
    """Open a page whose requests may fail."""
    with browser.new_context() as context:
        context.set_default_timeout(1000 * TIMEOUT_SECONDS)
        page = context.new_page()
        page.goto(address)
        yield page


def counts_of(service: Running) -> Counts:
    return service.engine.surface("search-ads").counts().counts


def wait_for_status(page: Page, text: str) -> None:
    expect(page.locator("output")).to_have_text(text)


def shown_items(page: Page) -> list[str]:
    wait_for_status(page, "Ranking of the service.")
    return page.locator("li").all_inner_texts()


def hide(page: Page) -> None:
    """Dispatch the event of a change of tabs, which a browser without windows does not."""
    page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', {value: true});"
        " document.dispatchEvent(new Event('visibilitychange')) }"
    )


def assert_counted_without_click(service: Running) -> None:
    wait_until(lambda: counts_of(service).rounds > 0)
    counts = counts_of(service)
    assert (counts.rounds, counts.rewards.sum()) == (1, 0)


@pytest.mark.parametrize("button", ["left", "middle"])
def test_a_click_is_counted(
    open_page: OpenPage, example: str, service: Running, button: Literal["left", "middle"]
) -> None:
    page = open_page(f"{example}?service={service.address}")
    items = shown_items(page)
    assert len(items) == 2
    assert set(items) <= set(ITEMS)
    page.locator("a").nth(1).click(button=button)
    wait_for_status(page, f"{items[1]}: counted.")
    page.locator("a").nth(0).click()  # at most one click counts
    page.goto("about:blank")
    counts = counts_of(service)
    assert (counts.rounds, counts.rewards.sum()) == (1, 1)
    assert counts.rewards[FEMALE, ITEMS.index(items[1]), 1] == 1


def test_leaving_without_a_click_is_counted(open_page: OpenPage, example: str, service: Running) -> None:
    page = open_page(f"{example}?service={service.address}")
    shown_items(page)
    page.goto("about:blank")
    assert_counted_without_click(service)


def test_closing_the_tab_is_counted(browser: Browser, example: str, service: Running) -> None:
    with page_of(browser, f"{example}?service={service.address}") as page:
        shown_items(page)
        page.close(run_before_unload=True)
        assert_counted_without_click(service)


def test_hiding_the_page_is_counted(open_page: OpenPage, example: str, service: Running) -> None:
    page = open_page(f"{example}?service={service.address}")
    shown_items(page)
    hide(page)
    wait_for_status(page, "No click: counted.")
    assert_counted_without_click(service)


def test_the_next_visit_ends_the_one_before(open_page: OpenPage, example: str, service: Running) -> None:
    page = open_page(f"{example}?service={service.address}")
    shown_items(page)
    page.get_by_role("button", name="Next visit").click()
    assert_counted_without_click(service)


def test_the_default_order_is_shown_while_the_service_is_away(browser: Browser, example: str) -> None:
    with page_of(browser, f"{example}?service=http://127.0.0.1:{free_port()}") as page:
        wait_for_status(page, "Default ranking: the service is away.")
        assert page.locator("li").all_inner_texts() == ["ad-1", "ad-2"]
        page.locator("a").nth(1).click()
        wait_for_status(page, "ad-2: ignored.")


def test_the_last_ranking_is_shown_while_the_service_is_away(browser: Browser, example: str) -> None:
    with serving() as service, page_of(browser, f"{example}?service={service.address}") as page:
        items = shown_items(page)
        page.route("**/v1/**", lambda route: route.abort())
        page.get_by_role("button", name="Next visit").click()
        wait_for_status(page, "Default ranking: the service is away.")
        assert page.locator("li").all_inner_texts() == items


def test_the_default_order_is_shown_from_a_file(browser: Browser) -> None:
    """Browsers load no modules from files, and no origin could be allowed for them."""
    with page_of(browser, (ROOT / "examples" / "page.html").as_uri()) as page:
        wait_for_status(page, "Default order.")
        assert page.locator("li").all_inner_texts() == ["ad-1", "ad-2"]


def test_all_clicks_are_reported_while_the_ranking_is_not_counted(
    open_page: OpenPage, example: str, service: Running
) -> None:
    changed = service.ask("PATCH", "/v1/surfaces/search-ads", {"click_model": "position-based"})
    assert changed.status_code == 200
    page = open_page(f"{example}?service={service.address}")
    items = shown_items(page)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))  # noqa: PLW0108 - Playwright sets attributes
    page.locator("a").nth(0).dblclick()
    wait_for_status(page, f"{items[0]}: recorded.")
    hide(page)  # users come back from a new tab for more clicks
    page.locator("a").nth(1).click()
    wait_for_status(page, f"{items[1]}: recorded.")
    page.evaluate("() => dispatchEvent(new Event('pagehide'))")
    wait_for_status(page, "No click: counted.")
    clicked = [one.post_data_json["clicked"] for one in sent if one.method == "POST"]
    assert clicked == [*items, None]
    counts = counts_of(service)
    assert (counts.rounds, counts.rewards.sum()) == (1, 2)


def test_errors_of_feedback_are_shown(browser: Browser, example: str, service: Running) -> None:
    problem = {"detail": "the attribution window is closed"}
    headers = {"access-control-allow-origin": "*"}
    with page_of(browser, f"{example}?service={service.address}") as page:
        items = shown_items(page)
        page.route("**/v1/feedback", lambda route: route.fulfill(status=410, json=problem, headers=headers))
        page.locator("a").first.click()
        wait_for_status(page, f"{items[0]}: the attribution window is closed.")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        pytest.param(390, "dark", marks=pytest.mark.campaign),
        pytest.param(1440, "light", marks=pytest.mark.campaign),
        (1440, "dark"),
    ],
)
def test_the_page_is_accessible_at_any_width(
    open_page: OpenPage, example: str, service: Running, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = open_page(f"{example}?service={service.address}", width=width, scheme=scheme)
    shown_items(page)
    assert not scrolls_sideways(page)
    assert not overhanging(page)
    assert min(contrasts(page).values()) >= 4.5
    assert accessibility_findings(page) == []


def test_the_page_uses_the_default_port_of_the_service() -> None:
    from banditrank.service._settings import Settings

    page = (ROOT / "examples" / "page.html").read_text(encoding="utf-8")
    assert f'"http://127.0.0.1:{Settings().port}"' in page
