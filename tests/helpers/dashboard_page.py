"""Actions and waits on the dashboard's page."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from helpers.browser import TIMEOUT_SECONDS, collect_failures
from helpers.dashboard_server import Fixture

# Request timeouts use the test's clock, too.
_TIMEOUTS = """
  AbortSignal.timeout = (delay) => {
    const ending = new AbortController();
    setTimeout(() => ending.abort(), delay);
    return ending.signal;
  };
"""


@contextmanager
def clocked_page(browser: Browser, server: Fixture) -> Iterator[Page]:
    """Yield a page whose clock is controlled by the test.

    Failed requests to the service are allowed; other errors fail the test.
    """
    failures: list[str] = []
    with browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
        context.set_default_timeout(1000 * TIMEOUT_SECONDS)
        page = context.new_page()
        collect_failures(page, failures)
        page.clock.install(time=1_773_000_000)
        page.add_init_script(_TIMEOUTS)
        yield page
    allowed = (f"failed: {server.address}/v1/", "console: Failed to load resource:")
    assert [failure for failure in failures if not failure.startswith(allowed)] == []


def settled(page: Page) -> Page:
    """Return the page of a surface once it shows its data."""
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator("#working .a")).not_to_have_text("Loading…")
    return page


def drawn(page: Page) -> None:
    """Wait until pending changes are drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pass_time(page: Page, seconds: int) -> None:
    """Advance the clock in steps, so that responses arrive before the next timer."""
    for _ in range(seconds):
        page.clock.run_for(1000)


def rows_of(page: Page, key: str) -> list[list[str]]:
    """Open the table of a chart and return its rows."""
    behind = page.locator(f"details[data-table={key}]")
    if not behind.evaluate("details => details.open"):
        behind.locator("summary").click()
    expect(behind.locator("tbody tr").first).to_be_visible()
    rows: list[list[str]] = behind.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return rows


def readouts(page: Page, key: str) -> list[str]:
    """Return the text of a chart at each cursor position, from first to last."""
    chart = page.locator(f"[data-chart={key}]")
    chart.focus()
    page.keyboard.press("Home")
    said = []
    for _ in range(int(chart.get_attribute("aria-valuemax") or 0) + 1):
        words = chart.get_attribute("aria-valuetext") or ""
        assert page.locator(f"[data-readout={key}]").inner_text() == words
        said.append(words)
        page.keyboard.press("ArrowRight")
    return said


def evaluate_module(page: Page, module: str, expression: str, argument: Any = None) -> Any:
    """Evaluate an expression of a module of the page, ``m``, and an argument, ``a``."""
    function = f"async ([file, a]) => {{ const m = await import(file); return {expression}; }}"
    return page.evaluate(function, [f"/assets/{module}", argument])
