"""Take the pictures of the demo in ``docs/images``: ``make pictures``.

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
SIZE = {"width": 1312, "height": 1180}
PICTURES = {
    "demo-personalized.png": ("/surfaces/search-ads", "light"),
    "demo-equal.png": ("/surfaces/home-carousel", "dark"),
}


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo until all visits are over; give its address, and end it with the block."""
    program = "from banditrank.cli.main import main; main()"
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


def take(browser: Browser, address: str, scheme: str, path: Path) -> None:
    """Take a picture of a page once it shows figures."""
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    page.locator("main svg").first.wait_for()
    page.wait_for_timeout(3000)  # for what comes with the next event
    page.screenshot(path=path)
    context.close()


def main() -> None:
    """Take all pictures."""
    names = (ROOT / "tools" / "browser_names").read_text().split()
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        sys.exit("there is no browser: run `make browser`")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium's sandbox refuses to run as root
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-dev-shm-usage", *sandbox]
        )
        for name, (place, scheme) in PICTURES.items():
            take(browser, address + place, scheme, IMAGES / name)
            print(IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main()
