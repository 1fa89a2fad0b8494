"""A real browser for tests: the system's Chromium or Chrome, which `make browser` installs."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = (Path(__file__).parents[2] / "tools" / "browser_names").read_text().split()
SECONDS = 30  # for any step: a page that takes longer is broken
THIS_MACHINE = {None, "", "localhost", "127.0.0.1"}

OpenPage = Callable[..., Page]


# Of a module and not of the session: while the browser runs, so does an event loop in this thread, and no
# other test could start one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of a module."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.fail("there is no browser: run `make browser`")
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses to run as root
    arguments = ["--disable-dev-shm-usage"]  # containers often have too little shared memory for a page
    if as_root:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments, timeout=1000 * SECONDS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Give a function that opens an address; the test fails if a page complained about anything.

    ``open_page(path.as_uri(), width=390, scheme="dark")`` returns Playwright's page.
    """
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_address(
        address: str, *, width: int = 1440, height: int = 900, scheme: Literal["light", "dark"] = "light"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(1000 * SECONDS)
        page = context.new_page()
        watch(page, complaints)
        page.goto(address, wait_until="load")
        return page

    yield open_address
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


def watch(page: Page, complaints: list[str]) -> None:
    """Note what goes wrong on a page, and every request to another machine."""

    def note(complaint: str, *, so: bool = True) -> None:
        if so:
            complaints.append(complaint[:300])

    page.on(
        "console", lambda message: note(f"console: {message.text}", so=message.type in {"error", "warning"})
    )
    page.on("pageerror", lambda error: note(f"script: {error}"))
    # A page may end its own requests, such as a stream of events when it is paused.
    page.on(
        "requestfailed",
        lambda request: note(f"failed: {request.url}", so=request.failure != "net::ERR_ABORTED"),
    )
    page.on(
        "request",
        lambda request: note(
            f"another machine: {request.url}", so=urlsplit(request.url).hostname not in THIS_MACHINE
        ),
    )
