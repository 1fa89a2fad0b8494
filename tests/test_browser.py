"""The browser of the tests notices what it is there to notice."""

from pathlib import Path

from helpers.browser import watch
from playwright.sync_api import Browser

BROKEN = """<!doctype html><title>Broken</title>
<img src="missing.png" alt="">
<img src="http://elsewhere.invalid/picture.png" alt="">
<script>console.error("said so"); console.warn("warned"); throw new Error("thrown")</script>
"""


def test_every_kind_of_complaint_is_noted(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "broken.html"
    file.write_text(BROKEN)
    complaints: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        watch(page, complaints)
        page.goto(file.as_uri(), wait_until="load")
    noted = "\n".join(complaints)
    for expected in (
        "console: said so",
        "console: warned",
        "script: thrown",
        f"failed: {(tmp_path / 'missing.png').as_uri()}",
        "another machine: http://elsewhere.invalid/picture.png",
    ):
        assert expected in noted
