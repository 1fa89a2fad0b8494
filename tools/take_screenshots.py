"""Make all pictures in ``docs/images``: ``make screenshots``, or ``make screenshots PICTURES=kdd2012.png``.

The demo makes a fixed number of visits with a fixed seed, then its pages are opened in the system's Chromium.
The other pictures are those of commands.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

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


PLOT, REPORT = "kdd2012.png", "reproduction.png"
REPORT_HEIGHT = 1240  # its head and the first results
COMMAND = [sys.executable, "-c", "from banditrank._cli.main import main; main()"]


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo, yield its address after all visits, and stop it at the end of the block."""
    with subprocess.Popen([*COMMAND, "demo", *DEMO], stdout=subprocess.PIPE, text=True) as process:
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


def take_demo(browser: Browser, names: Collection[str]) -> None:
    """Take screenshots of the demo's pages."""
    with demo() as address:
        for name in names:
            path, *options = SCREENSHOTS[name]
            take(browser, address + path, *options, IMAGES / name)


def take_report(browser: Browser) -> None:
    """Run all studies in their quick version, and take a screenshot of the top of the report."""
    with TemporaryDirectory() as directory:
        subprocess.run([*COMMAND, "reproduce", "--quick", "--output", directory], check=True)
        page = browser.new_page(viewport={"width": WIDTH, "height": REPORT_HEIGHT}, color_scheme="light")
        page.goto((Path(directory) / "index.html").as_uri())
        page.screenshot(path=IMAGES / REPORT)


def main() -> None:
    """Make the pictures that are named, or all."""
    wanted = sys.argv[1:] or [*SCREENSHOTS, PLOT, REPORT]
    names = (ROOT / "tools" / "browser_names").read_text().split()
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        sys.exit("there is no browser: run `make browser`")
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium's sandbox refuses to run as root
    if PLOT in wanted:
        subprocess.run([*COMMAND, "simulate", "kdd2012", "--plot", IMAGES / PLOT], check=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-dev-shm-usage", *sandbox]
        )
        if REPORT in wanted:
            take_report(browser)
        if screenshots := [name for name in SCREENSHOTS if name in wanted]:
            take_demo(browser, screenshots)
        browser.close()
    print("\n".join(str(IMAGES / name) for name in wanted))


if __name__ == "__main__":
    main()
