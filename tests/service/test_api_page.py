"""The API page in a browser: it searches operations, and tries them with the key that the reader typed."""

import re
from collections.abc import Iterator

import pytest
from helpers.browser import OpenPage, collect_failures
from helpers.page_measures import accessibility_findings
from helpers.running_service import Running, running
from playwright.sync_api import Browser, Page, expect

from banditrank.engine._api_keys import create_key
from banditrank.service._application import ROUTES
from banditrank.service._settings import Settings
from banditrank.storage._memory import MemoryStore

ADS = {"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}
FAULTS_OF_SWAGGER_UI = {
    "color-contrast",  # of methods, versions and examples
    "heading-order",  # h3 follows h1 or none
    "nested-interactive",  # the button that opens an operation contains a link
    "region",  # the title and the search are outside of its main landmark
}
OPERATIONS = [route for route in ROUTES if route.path not in ("/docs", "/openapi.json")]


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running() as service:
        assert service.ask("POST", "/v1/surfaces", ADS).status_code == 201
        yield service


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[Running, dict[str, str]]]:
    """Yield a service that requires keys, and keys by their rights."""
    store = MemoryStore()
    keys = {right: create_key(store, right, [right]) for right in ("rank", "read", "administer")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "open_store", lambda _: store)
        with running(require_keys=True) as service:
            headers = {"authorization": f"Bearer {keys['administer']}"}
            assert service.ask("POST", "/v1/surfaces", ADS, headers=headers).status_code == 201
            yield service, keys


def opened(page: Page, operation: str) -> Page:
    page.locator(f"[id$='-{operation}'] .opblock-summary-control").click()
    expect(page.locator(f"[id$='-{operation}'] .execute")).to_be_visible()
    return page


def tried(page: Page, operation: str) -> tuple[int, dict]:
    """Return the status and the body of the response to the example request."""
    block = page.locator(f"[id$='-{operation}']")
    with page.expect_response(lambda response: "/v1/surfaces/ads" in response.url) as received:
        block.locator(".execute").click()
    response = received.value
    shown = block.locator(".live-responses-table .response .response-col_status")
    expect(shown).to_have_text(re.compile(f"^{response.status}"))
    return response.status, response.json()


def authorize(page: Page, key: str) -> None:
    page.locator(".btn.authorize").click()
    dialog = page.locator(".dialog-ux")
    dialog.locator("input").fill(key)
    dialog.locator("button.authorize").click()
    dialog.locator("button.btn-done").click()
    expect(dialog).to_be_hidden()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        pytest.param(390, "dark", marks=pytest.mark.campaign),
        pytest.param(1440, "light", marks=pytest.mark.campaign),
        (1440, "dark"),
    ],
)
def test_the_page_lists_all_operations_and_fits(
    open_page: OpenPage,
    service: Running,
    width: int,
    scheme: str,
) -> None:
    page = open_page(f"{service.address}/docs", width=width, scheme=scheme)
    expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    expect(page.get_by_text("No API key is required.")).to_be_visible()
    opened(page, "rank")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3]))
    assert (brightness < 200) == (scheme == "dark")
    before = page.locator("html").get_attribute("class")
    for _ in range(2):  # auto, light, dark
        page.locator("#theme").click()
    expect(page.locator("html")).to_have_class(re.compile("dark-mode"))
    assert ("dark-mode" in (before or "")) == (scheme == "dark")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_axe_finds_only_known_faults_of_swagger_ui(
    open_page: OpenPage, service: Running, width: int, scheme: str
) -> None:
    page = opened(open_page(f"{service.address}/docs", width=width, scheme=scheme), "rank")
    expect(page.get_by_text("No API key is required.")).to_be_visible()
    assert accessibility_findings(page, ".top") == []
    assert accessibility_findings(page, without=FAULTS_OF_SWAGGER_UI) == []
    assert page.get_by_label("Request body").count() == 1


def test_search_finds_operations_by_all_their_texts(open_page: OpenPage, service: Running) -> None:
    page = open_page(f"{service.address}/docs")
    search = page.get_by_label("Search operations")
    for phrase, found in (
        ("syncItems", {"syncItems"}),  # the operation id
        ("rankings/{ranking", {"explain"}),  # the path
        ("durable COMMIT", {"feedback"}),  # the summary, in any case
        ("delete surfaces", {"deleteSurface", "retireItem"}),  # method and tag
        ("prometheus", {"metrics"}),
        ("no such thing", set()),
    ):
        search.fill(phrase)
        for operation in found:
            expect(page.locator(f"[id$='-{operation}']")).to_be_visible()
        expect(page.locator(".opblock")).to_have_count(len(found))


def test_an_operation_is_tried_with_its_example(open_page: OpenPage, service: Running) -> None:
    page = opened(open_page(f"{service.address}/docs"), "rank")
    status, body = tried(page, "rank")
    assert status == 200
    assert set(body["items"]) <= set(ADS["items"])
    assert service.engine.issued_ranking(body["id"])


def test_a_key_tries_what_it_may_do(browser: Browser, closed: tuple[Running, dict[str, str]]) -> None:
    service, keys = closed
    failures: list[str] = []
    context = browser.new_context()
    try:
        page = context.new_page()
        collect_failures(page, failures)
        page.goto(f"{service.address}/docs")
        expect(page.get_by_text("An API key is required: choose Authorize.")).to_be_visible()
        for operation in ("rank", "readSurface"):
            opened(page, operation)
            status, body = tried(page, operation)
            assert (status, body["type"]) == (401, "urn:banditrank:problem:no-key")
        authorize(page, keys["rank"])
        assert tried(page, "rank")[0] == 200
        status, body = tried(page, "readSurface")
        assert (status, body["type"]) == (403, "urn:banditrank:problem:no-right")
        assert (
            page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])").count(keys["rank"]) == 0
        )
    finally:
        context.close()
    # Chromium reports refused requests as errors of the page; there is no other.
    assert failures
    assert all(re.search(r"status of 40[13]", one) for one in failures), failures


def test_the_key_of_the_dashboard_is_used(
    open_page: OpenPage, closed: tuple[Running, dict[str, str]]
) -> None:
    service, keys = closed
    page = open_page(f"{service.address}/docs")
    page.evaluate("key => sessionStorage.setItem('banditrank-key', key)", keys["read"])
    page.reload()
    expect(page.get_by_text("The key of this tab may read.")).to_be_visible()
    opened(page, "readSurface")
    assert tried(page, "readSurface") == (
        200,
        service.ask("GET", "/v1/surfaces/ads", headers={"authorization": f"Bearer {keys['read']}"}).json(),
    )
