"""The browser fixture collects all failures of a page."""

from pathlib import Path

from helpers.browser import collect_failures
from playwright.sync_api import Browser

BROKEN = """<!doctype html><title>Broken</title>
<img src="missing.png" alt="">
<img src="http://elsewhere.invalid/picture.png" alt="">
<script>console.error("said so"); console.warn("warned"); throw new Error("thrown")</script>
"""


def test_every_kind_of_failure_is_collected(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "broken.html"
    file.write_text(BROKEN)
    failures: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        collect_failures(page, failures)
        page.goto(file.as_uri(), wait_until="load")
    collected = "\n".join(failures)
    for expected in (
        "console: said so",
        "console: warned",
        "script: thrown",
        f"failed: {(tmp_path / 'missing.png').as_uri()}",
        "another machine: http://elsewhere.invalid/picture.png",
    ):
        assert expected in collected
