"""The page of a comparison: everything is on it, and it can be used in a real browser."""

import json
import re
from pathlib import Path
from typing import Literal

import pytest
from helpers.browser import OpenPage
from helpers.page_measures import contrasts, heading_levels, images, overhanging, scrolls_sideways
from helpers.small_comparison import shrink

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
N_REPRODUCTIONS = 2


@pytest.fixture(
    scope="module", params=[FEW_SUITES, pytest.param(tuple(SUITES), marks=pytest.mark.campaign)], ids=len
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
    assert not scrolls_sideways(page)
    assert overhanging(page) == []
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


def test_it_prints_light_and_whole(directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri(), width=PAPER, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert {figure["kind"] for figure in images(page)} == {"on-light"}
    assert all(figure["loaded"] and figure["place"][1] <= PAPER for figure in images(page))


def test_everything_is_on_the_page(suites: tuple[str, ...], directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri())
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
    assert heading_levels(page)[:4] == [1, 2, 2, 2]


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
