"""All studies of the paper with few rounds, and their HTML report in a real browser."""

import json
import re
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from helpers.browser import OpenPage
from helpers.figure_checks import check_report_figure
from helpers.page_measures import images, overhanging, overlapping_texts, scrolls_sideways

from banditrank._report_page import rendering
from banditrank._report_page.elements import ReportFigure
from banditrank.experiments._reproduce import STUDIES, find_studies, reproduce

SIZES = {
    "kdd2012": {"QUICK_HORIZON": 3000, "QUICK_REPLICATIONS": 3},
    "synthetic": {
        "QUICK_HORIZON": 2000,
        "QUICK_REPLICATIONS": 2,
        "QUICK_OTHER_PROBLEMS": 2,
        "QUICK_OTHER_HORIZON": 400,
    },
    "table1": {"QUICK_ROWS": 5000},
    "table2": {"QUICK_REPLICATIONS": 2, "QUICK_TIMED_RUNS": 1, "ROUNDS": (300, 600)},
    "regret_order": {
        "QUICK_HORIZON": 2000,
        "QUICK_REPLICATIONS": 2,
        "QUICK_PROBLEMS": 2,
        "QUICK_SIZES_HORIZON": 300,
    },
    "lemmas": {"ROUNDS": (300, 1000), "QUICK_REPLICATIONS": 4},
    "lock_in": {"QUICK_HORIZON": 1000, "QUICK_REPLICATIONS": 3, "QUICK_PHASES": 2},
    "lotteries": {"QUICK_HORIZON": 500, "QUICK_REPLICATIONS": 2},
}
"""Constants of each study's sweep."""

WORDS = {
    "agrees": "Holds",
    "partly": "Holds in part",
    "disagrees": "Does not hold here",
    "not checked": "Not checked",
    "holds": "Holds",
    "does not hold": "Does not hold here",
    "too short to tell": "Too short a run to tell",
    "not decided": "Not decided",
}
"""Words on the page, by agreement of a study and answer to a check."""


def render_light(figure: ReportFigure, image_format: str, *, dark: bool) -> bytes:  # noqa: ARG001
    """Render a figure for a light page only; once in each format."""
    key = (id(figure), image_format)
    if key not in RENDERED:
        if image_format == "png":
            check_report_figure(figure)  # finding 5: curves and texts are inside and apart
        RENDERED[key] = (figure, RENDER(figure, image_format, dark=False))
    return RENDERED[key][1]


RENDER = rendering._render
RENDERED: dict[tuple[int, str], tuple[ReportFigure, bytes]] = {}


@pytest.fixture(scope="module")
def directory(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("all")
    with pytest.MonkeyPatch.context() as patch:
        # Drawing takes most of the time. Figures of dark pages are in depth, and in
        # compare/test_comparison_report.py.
        if not pytestconfig.getoption("--campaign"):
            patch.setattr(rendering, "_render", render_light)
        for study, sizes in SIZES.items():
            sweep = import_module(f"banditrank.experiments._{study}.sweep")
            for name, size in sizes.items():
                patch.setattr(sweep, name, size)
        table2 = import_module("banditrank.experiments._table2.analysis")
        printed = {(row, rounds // 1000): cell for (row, rounds), cell in table2.PRINTED.items()}
        patch.setattr(table2, "PRINTED", printed)
        patch.setattr(table2, "ROUNDS", SIZES["table2"]["ROUNDS"])
        reproduce(find_studies(), path, quick=True, workers=2)
    return path


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_shows_every_study(width: int, directory: Path, open_page: OpenPage) -> None:
    page = open_page((directory / "index.html").as_uri(), width=width)
    assert not scrolls_sideways(page)
    assert overhanging(page) == []
    assert overlapping_texts(page) == []
    summary = json.loads((directory / "summary.json").read_text())
    drawn = [name for study in summary["studies"].values() for name in study["figures"]]
    shown = images(page)
    assert len(shown) == len(drawn) >= 6
    for figure in shown:
        left, right, height = figure["place"]
        assert figure["loaded"]
        assert height > 100
        assert figure["box"][0] <= left < right
        assert right <= figure["box"][1] or figure["scrolls"]
    studies = page.locator(".study")
    assert studies.count() == len(STUDIES)
    for number, (name, study) in enumerate(STUDIES.items()):
        found = summary["studies"][name]
        section = studies.nth(number)
        text = re.sub(r"\s+", " ", section.inner_text())
        assert section.locator("h2").inner_text() == study.title
        agreement = [WORDS[found["agreement"]]] if study.has_agreement else []
        assert [text.strip() for text in section.locator(".agreement").all_inner_texts()] == agreement
        assert study.claim in text
        assert found["findings"] in text
        assert study.quick_scale in text
        checks = section.locator(".checks li")
        assert checks.count() == len(found["checks"]) >= 2
        in_order = sorted(found["checks"], key=lambda check: check["claimed_by"] != "paper")
        for place, check in enumerate(in_order):
            words = re.sub(r"\s+", " ", checks.nth(place).inner_text())
            assert words == f"{WORDS[check['answer']]} {check['statement']} {check['evidence']}"
        for table in found["tables"]:
            assert table["caption"] in text
        links = section.locator(".rail a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
        assert links == [
            f"{kind}/{name}/" for kind in ("data", "timings") if (directory / kind / name).exists()
        ]


def test_findings_are_two_sentences(directory: Path) -> None:
    for name, study in json.loads((directory / "summary.json").read_text())["studies"].items():
        sentences = re.split(r"(?<=[a-z%\d)])\. (?=[A-Z])", study["findings"])
        assert len(sentences) == 2, name
        assert study["findings"].endswith(".")


def test_tables_are_rectangular_and_complete(directory: Path) -> None:
    for study in json.loads((directory / "summary.json").read_text())["studies"].values():
        for table in study["tables"]:
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}
            assert len(set(table["columns"])) == len(table["columns"])
            assert not any("nan" in cell or "inf" in cell for row in table["rows"] for cell in row)


def test_figures_and_data_are_written_for_every_study(directory: Path) -> None:
    for name, study in json.loads((directory / "summary.json").read_text())["studies"].items():
        for job in study["jobs"]:
            kind = "timings" if job == "running-time" else "data"
            assert len(pd.read_parquet(directory / kind / name / f"{job}.parquet")) > 0
        for figure in study["figures"]:
            assert (directory / "figures" / name / f"{figure}.png").stat().st_size > 1000
            assert "<svg" in (directory / "figures" / name / f"{figure}.svg").read_text()
