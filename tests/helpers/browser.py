"""Browser fixtures with the system's Chromium or Chrome, which `make browser` installs."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = (Path(__file__).parents[2] / "tools" / "browser_names").read_text().split()
TIMEOUT_SECONDS = 30  # of any step
THIS_MACHINE = {None, "", "localhost", "127.0.0.1"}

OpenPage = Callable[..., Page]


# Scope is the module: the browser runs an event loop in this thread, so other tests could not start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of a module."""
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
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Yield a function that opens an address; the test fails on any error of a page.

    ``open_page(path.as_uri(), width=390, scheme="dark")`` returns Playwright's page.
    """
    contexts: list[BrowserContext] = []
    failures: list[str] = []

    def open_address(
        address: str, *, width: int = 1440, height: int = 900, scheme: Literal["light", "dark"] = "light"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(1000 * TIMEOUT_SECONDS)
        page = context.new_page()
        collect_failures(page, failures)
        page.goto(address, wait_until="load")
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert not failures, "\n".join(failures)


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
