"""What tests do on the dashboard's page."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from helpers.browser import watch
from helpers.dashboard_server import Fixture

# What ends a request that takes too long goes by the test's clock, too.
_TIMEOUTS = """
  AbortSignal.timeout = (delay) => {
    const ending = new AbortController();
    setTimeout(() => ending.abort(), delay);
    return ending.signal;
  };
"""


@contextmanager
def clocked_page(browser: Browser, server: Fixture) -> Iterator[Page]:
    """Give a page whose time passes when the test says so.

    It may complain of what the service does, and of no more.
    """
    complaints: list[str] = []
    with browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
        page = context.new_page()
        watch(page, complaints)
        page.clock.install(time=1_773_000_000)
        page.add_init_script(_TIMEOUTS)
        yield page
    away = (f"failed: {server.address}/v1/", "console: Failed to load resource:")
    assert [complaint for complaint in complaints if not complaint.startswith(away)] == []


def settled(page: Page) -> Page:
    """Return the page of a surface once it shows what it was told."""
    expect(page.locator("#updated")).to_contain_text("Live")
    expect(page.locator("#working .a")).not_to_have_text("Loading…")
    return page


def drawn(page: Page) -> None:
    """Wait until what was asked for is on the page."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pass_time(page: Page, seconds: int) -> None:
    """Let time pass in steps, so that answers to what a timer asked arrive before the next one."""
    for _ in range(seconds):
        page.clock.run_for(1000)


def rows_of(page: Page, key: str) -> list[list[str]]:
    """Return the rows of the table behind a chart, which is opened for that."""
    behind = page.locator(f"details[data-table={key}]")
    if not behind.evaluate("details => details.open"):
        behind.locator("summary").click()
    expect(behind.locator("tbody tr").first).to_be_visible()
    rows: list[list[str]] = behind.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return rows


def readouts(page: Page, key: str) -> list[str]:
    """Return what a chart says at each place of its cursor, from the first to the last."""
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
    """Evaluate an expression with a module of the page, which it calls ``m``, and an argument, ``a``."""
    function = f"async ([file, a]) => {{ const m = await import(file); return {expression}; }}"
    return page.evaluate(function, [f"/assets/{module}", argument])
