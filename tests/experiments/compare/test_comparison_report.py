"""The page of a comparison: everything is on it, and it can be used in a real browser."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from helpers.browser import OpenPage
from helpers.page_measures import (
    contrasts,
    heading_levels,
    images,
    overhanging,
    overlapping_texts,
    scrolls_sideways,
)
from helpers.small_comparison import shrink
from playwright.sync_api import Page, expect

from banditrank.experiments._compare.compare import compare
from banditrank.experiments._compare.suites import SUITES

POLICIES = (
    "pbm-ucb",
    "bubble-rank",
    "bubble-rank-ordered",
    "random",
)  # few compiled loops, two reproductions
PAPER = 673  # width of A4 without margins, in CSS pixels
FEW_SUITES = ("table1", "table1-nash", "item-jumps")  # personalized, equal and changing
ALL_SUITES = tuple(
    name for name, suite in SUITES.items() if not suite.guarantees
)  # which these policies cannot keep
N_REPRODUCTIONS = 2
MAX_HEIGHT = 8000  # of the page with all sections closed, in CSS pixels


@pytest.fixture(
    scope="module", params=[FEW_SUITES, pytest.param(ALL_SUITES, marks=pytest.mark.campaign)], ids=len
)
def suites(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module")
def directory(suites: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison")
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        compare([*suites, "reproductions"], POLICIES, path, quick=True, workers=2)
    return path


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "light"),
        (1440, "dark"),
        pytest.param(390, "dark", marks=pytest.mark.campaign),
        pytest.param(1440, "light", marks=pytest.mark.campaign),
    ],
)
def test_it_can_be_used_at_any_width_in_both_schemes(
    width: int,
    scheme: Literal["light", "dark"],
    suites: tuple[str, ...],
    directory: Path,
    open_page: OpenPage,
) -> None:
    page = open_page((directory / "index.html").as_uri(), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollHeight") < MAX_HEIGHT
    for _ in range(2):  # closed, and open
        assert not scrolls_sideways(page)
        assert overhanging(page) == []
        assert overlapping_texts(page) == []
        open_details(page)
    shown = images(page)
    assert len(shown) == 1 + len(suites) + N_REPRODUCTIONS  # the first is the leaderboard
    for figure in shown:
        left, right, height = figure["place"]
        assert figure["loaded"]
        assert figure["kind"] == f"on-{scheme}"
        assert height > 100
        assert 0 <= figure["box"][0] < left < right
        assert figure["box"][1] <= width
        assert right <= figure["box"][1] or figure["scrolls"]
    assert {name: value for name, value in contrasts(page).items() if value < 4.5} == {}


def open_details(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")


@pytest.mark.parametrize("width", [390, 1440])
def test_contents_open_the_section_they_link_to(
    width: int, suites: tuple[str, ...], directory: Path, open_page: OpenPage
) -> None:
    page = open_page((directory / "index.html").as_uri(), width=width)
    assert page.locator("details[open]").count() == 0
    links = page.locator(".contents a")
    addresses = links.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    studies = [*suites, "paper-pbm-ucb", "paper-bubble-rank"]
    groups = ["#leaderboard", "#suites", "#reproductions"]
    assert sorted(addresses) == sorted([*groups, *(f"#study-{name}" for name in studies)])
    shown = groups if width == 390 else addresses
    assert links.filter(visible=True).count() == len(shown)
    target = f"study-{suites[-1]}"
    page.evaluate(f"location.hash = '#{target}'")
    body = page.locator(f"[id='{target}']")
    expect(body).to_be_in_viewport()
    assert page.locator("details[open]").count() == 1
    bottom = page.locator(".contents").bounding_box()
    assert bottom is not None
    assert bottom["y"] >= 0  # the contents stay in view


def test_labels_on_narrow_screens_are_those_of_the_columns(directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri(), width=390)
    labelled = page.locator("td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    assert set(labelled) == {"none"}


def test_it_prints_light_and_whole(directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri(), width=PAPER, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert {figure["kind"] for figure in images(page)} == {"on-light"}
    assert all(figure["loaded"] and figure["place"][1] <= PAPER for figure in images(page))
    assert page.locator(".contents").is_hidden()
    assert all(height > 100 for *_, height in (figure["place"] for figure in images(page)))


def test_everything_is_on_the_page(suites: tuple[str, ...], directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri())
    open_details(page)
    text = re.sub(r"\s+", " ", page.inner_text("body"))
    summary = json.loads((directory / "summary.json").read_text())
    for section in (summary["overview"], *summary["studies"].values()):
        for expected in (section["title"], section["claim"], section["findings"]):
            assert expected in text
        for table in section["tables"]:
            assert table["caption"] in text
        for check in section["checks"]:
            assert check["statement"] in text
    assert page.title() == "Comparing policies · banditrank"
    assert "This is a quick run." in text
    assert page.locator(".study").count() == len(suites) + N_REPRODUCTIONS
    agreements = page.locator(".study .agreement").all_inner_texts()
    assert len(agreements) == N_REPRODUCTIONS  # suites have none
    levels = heading_levels(page)
    assert levels[:2] == [1, 2]
    assert max(after - before for before, after in pairwise(levels)) == 1


def test_all_links_have_targets(directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri())
    for link in page.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))"):
        if link.startswith("#"):
            assert page.locator(f"[id='{link[1:]}']").count() == 1, link
        else:
            assert (directory / link).exists(), link


def test_tables_are_rectangular_and_complete(directory: Path) -> None:
    summary = json.loads((directory / "summary.json").read_text())
    for section in (summary["overview"], *summary["studies"].values()):
        for table in section["tables"]:
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}
            assert len(set(table["columns"])) == len(table["columns"])
            assert not any(re.search(r"\b(nan|inf)\b", cell) for row in table["rows"] for cell in row)
