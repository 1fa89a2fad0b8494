"""Browser fixtures with the system's Chromium or Chrome, which `make browser` installs."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

NAMES = (Path(__file__).parents[2] / "tools" / "browser_names").read_text().split()
TIMEOUT_SECONDS = 120  # of any step, on a busy machine
THIS_MACHINE = {None, "", "localhost", "127.0.0.1"}

OpenPage = Callable[..., Page]

expect.set_options(timeout=1000 * TIMEOUT_SECONDS)  # five seconds by default


class _SharedBrowser:
    """Browser for the tests of consecutive modules: starting it takes a second of processor time.

    Attributes
    ----------
    is_next
        Whether the test after the present one needs a browser. It is closed before any other test: while
        Playwright runs, no test can start an event loop in this thread.
    """

    def __init__(self) -> None:
        self.is_next = False
        self._stack = ExitStack()
        self._browser: Browser | None = None

    def start(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self.close()
            self._browser = self._stack.enter_context(_started_browser())
        return self._browser

    def close(self) -> None:
        self._browser = None
        self._stack.close()


_SHARED = _SharedBrowser()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Note whether the next test needs a browser, before the fixtures of this one end."""
    _SHARED.is_next = "browser" in getattr(nextitem, "fixturenames", ())


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Close the browser if the tests were stopped."""
    _SHARED.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of a module, or take that of the module before."""
    yield _SHARED.start()
    if not _SHARED.is_next:
        _SHARED.close()


@contextmanager
def _started_browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail("browser not found: run `make browser`")
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox does not run as root
    arguments = ["--disable-dev-shm-usage"]  # containers often have too little shared memory for a page
    if as_root:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=arguments, timeout=1000 * TIMEOUT_SECONDS
        )
        try:
            yield started
        finally:
            started.close()


class _Pages:
    """Open pages with the failures of all of them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._failures: list[str] = []

    def open(
        self,
        address: str,
        *,
        width: int = 1440,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
    ) -> Page:
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        self._contexts.append(context)
        context.set_default_timeout(1000 * TIMEOUT_SECONDS)
        page = context.new_page()
        collect_failures(page, self._failures)
        page.goto(address, wait_until="load")
        return page

    def assert_no_failures(self) -> None:
        assert not self._failures, "\n".join(self._failures)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Yield a function that opens an address; the test fails on any error of a page.

    ``open_page(path.as_uri(), width=390, scheme="dark")`` returns Playwright's page.
    """
    pages = _Pages(browser)
    yield pages.open
    pages.close()
    pages.assert_no_failures()


@pytest.fixture(scope="module")
def _module_pages(browser: Browser) -> Iterator[tuple[_Pages, OpenPage]]:
    pages = _Pages(browser)
    yield pages, cache(pages.open)
    pages.close()


@pytest.fixture
def shared_page(_module_pages: tuple[_Pages, OpenPage]) -> Iterator[OpenPage]:
    """Yield a function like that of `open_page`, whose pages are kept for all tests of a module.

    For tests that read a page: tables may be open, and charts may have a cursor.
    """
    pages, open_once = _module_pages
    yield open_once
    pages.assert_no_failures()


def collect_failures(page: Page, failures: list[str]) -> None:
    """Record errors of a page, and requests to other machines."""

    def record(failure: str, *, is_failure: bool = True) -> None:
        if is_failure:
            failures.append(failure[:300])

    page.on(
        "console",
        lambda message: record(f"console: {message.text}", is_failure=message.type in {"error", "warning"}),
    )
    page.on("pageerror", lambda error: record(f"script: {error}"))
    # A page may abort its own requests, such as an event stream when it is paused.
    page.on(
        "requestfailed",
        lambda request: record(f"failed: {request.url}", is_failure=request.failure != "net::ERR_ABORTED"),
    )
    page.on(
        "request",
        lambda request: record(
            f"another machine: {request.url}", is_failure=urlsplit(request.url).hostname not in THIS_MACHINE
        ),
    )
