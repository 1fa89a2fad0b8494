"""Take the screenshots of the demo in ``docs/images``: ``make screenshots``.

The demo makes a fixed number of visits with a fixed seed, then its pages are opened in the system's Chromium.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
DEMO = ["--rounds", "6000", "--seed", "7", "--speed", "50", "--stay", "--port", "0"]
WIDTH = 1440
# By file: the page, its colours, and the first and the last section to be seen.
SCREENSHOTS = {
    "demo-personalized.png": ("/surfaces/search-ads", "light", "body", "#learned"),
    "demo-equal.png": ("/surfaces/home-carousel", "dark", "#working", "#fair"),
}


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo, yield its address after all visits, and stop it at the end of the block."""
    program = "from banditrank._cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "demo", *DEMO], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().split()[1]
            print(f"{address}: waiting for all visits")
            process.stdout.readline()
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def take(browser: Browser, address: str, scheme: str, first: str, last: str, path: Path) -> None:
    """Take a screenshot of sections of a page after its charts are drawn."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    for drawn in ("#learned svg", "#working .plot svg"):
        page.locator(drawn).first.wait_for()
    top = page.locator(first).bounding_box()["y"]
    end = page.locator(last).bounding_box()
    clip = {"x": 0, "y": top, "width": WIDTH, "height": end["y"] + end["height"] - top}
    page.screenshot(path=path, clip=clip, full_page=True)
    context.close()


def main() -> None:
    """Take all screenshots."""
    names = (ROOT / "tools" / "browser_names").read_text().split()
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        sys.exit("there is no browser: run `make browser`")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium's sandbox refuses to run as root
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-dev-shm-usage", *sandbox]
        )
        for name, (path, *options) in SCREENSHOTS.items():
            take(browser, address + path, *options, IMAGES / name)
            print(IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main()
