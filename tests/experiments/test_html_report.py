"""The HTML page of a report: complete, safe, and usable in a real browser."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from zipfile import ZipFile

import pytest
from flit_core import buildapi
from helpers.browser import OpenPage
from helpers.page_measures import (
    contrasts,
    heading_levels,
    images,
    overhanging,
    overlapping_texts,
    right_edge,
    scrolls_sideways,
)
from playwright.sync_api import Locator, Page, expect

from banditrank._figures import escape_mathtext
from banditrank._report_page.elements import ReportFigure, Table, column_kinds
from banditrank._report_page.rendering import render_figure
from banditrank.experiments._html_report import write_html_report
from banditrank.experiments._report import Report, StudyReport
from banditrank.experiments._study import Check, Study, StudyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
NASTY = """<script>alert("$1 & it's")</script>"""
HOLDS = Check("Regret falls.", True, "from 0.31 to 0.02")
FAILS = Check(f"No item is called {NASTY}.", False, f"{NASTY} is", needs_full_run=False)
SHORT = Check("Regret is sub-linear.", False, "exponent 0.95")
UNKNOWN = Check("It never ends.", None, "the run ended")
CAPTION = f"Regret of {NASTY} over rounds: medians, in bands from the 10% to the 90% quantile."
PAPER = 673  # width of A4 without margins, in CSS pixels

Scheme = Literal["light", "dark"]
on_screens = pytest.mark.parametrize("width", [390, 1440])
in_schemes = pytest.mark.parametrize("scheme", ["light", "dark"])


def draw(figure: "Figure") -> None:
    axes = figure.subplots()
    axes.plot([1, 2, 3], [3, 1, 2])
    axes.set_title(escape_mathtext("<b>$1</b>"))


def study(name: str, title: str, result: StudyResult, seconds: float) -> StudyReport:
    claim = f"The paper says that {NASTY} is slow. It costs $5 and $6."
    quick_scale = f"Two replications of {name} instead of forty."
    return StudyReport(
        Study(name, title, claim, lambda *_, **__: (), lambda _: result, quick_scale), result, (), seconds
    )


def write(path: Path, *studies: StudyReport, quick: bool = True) -> Path:
    studies = [replace(each, result=replace(each.result, is_quick=quick)) for each in studies]
    report = Report(studies, 7, quick, "1.2.3", f"A machine called {NASTY}, 2 cores")
    figures = {each.study.name: list(map(render_figure, each.result.figures)) for each in studies}
    write_html_report(report, figures, path / "index.html")
    return path / "index.html"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    solvers = ["instance", *(f"branch and bound {k}" for k in range(9))]
    times = [[f"{n} items, 4 positions", *(f"{1.5 * n * k:,.2f}" for k in range(9))] for n in (5, 50)]
    names = [[NASTY, "A sentence of some length. " * 4], ["b", "–"]]
    drawn = [
        ReportFigure("curves", CAPTION, draw),
        *(ReportFigure(name, CAPTION, draw, 4, 3) for name in "ab"),
    ]
    first = StudyResult(
        "Half of it.", [HOLDS, FAILS, UNKNOWN], drawn, [Table("Times of all solvers", solvers, times)]
    )
    second = StudyResult(
        f"{NASTY} is fast.",
        [FAILS],
        [ReportFigure('"<b>$', CAPTION, draw)],
        [Table(f"Names, {NASTY}", ["name", "what"], names)],
    )
    return write(
        tmp_path_factory.mktemp("page"),
        study("first", "The problem of Table 1", first, 754),
        study('<script>"$', f"On {NASTY}", second, 1),
    )


def text_of(source: Page | Locator) -> str:
    shown = source.inner_text("body") if isinstance(source, Page) else source.inner_text()
    return re.sub(r"\s+", " ", shown)


def test_names_are_escaped(file: Path, open_page: OpenPage) -> None:
    source = file.read_text(encoding="utf-8")
    assert "<script" not in source
    assert "<b>" not in source
    page = open_page(file.as_uri())
    text = text_of(page)
    for expected in (
        f"A machine called {NASTY}, 2 cores",
        f"No item is called {NASTY}. {NASTY} is",
        f"The paper says that {NASTY} is slow. It costs $5 and $6.",
        f"Found {NASTY} is fast.",
        f"Names, {NASTY}",
        'data/<script>"$/',
    ):
        assert expected in text
    assert {figure["alt"] for figure in images(page)} == {CAPTION}


def test_the_page_loads_nothing(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in source
    assert all(address.startswith("data:") for address in re.findall(r'src(?:set)?="([^"]*)"', source))
    assert "@import" not in source
    assert "url(" not in source
    links = [link for link in re.findall(r'href="([^"]*)"', source) if re.match(r"\w+:|//", link)]
    assert links == ["data:,", "https://arxiv.org/abs/2311.04528"]


def test_the_header_shows_version_seed_time_and_machine(file: Path, open_page: OpenPage) -> None:
    page = open_page(file.as_uri())
    assert page.get_by_role("heading", level=1).inner_text() == "Reproducing the paper"
    head = text_of(page.locator("header"))
    for expected in (
        "“Bandit Learning to Rank with Position-Based Click Models: Personalized and Equal Treatments”",
        "(arXiv 2311.04528)",
        "Version 1.2.3 Seed 7 Time 12 min 35 s",
        "This is a quick run.",
    ):
        assert expected in head
    assert "Quick run: Two replications of first instead of forty." in text_of(page)


def test_a_full_run_does_not_mention_quick_runs(tmp_path: Path) -> None:
    source = write(tmp_path, study("a", "A", StudyResult("It is so.", [HOLDS]), 1), quick=False).read_text(
        "utf-8"
    )
    assert "quick run" not in source.lower()
    assert "instead of forty" not in source


@on_screens
def test_agreements_are_words_in_the_overview_and_with_each_study(
    width: int, file: Path, open_page: OpenPage
) -> None:
    page = open_page(file.as_uri(), width=width)
    rows = [text_of(row) for row in page.locator(".studies tbody tr").all()]
    scale = "Two replications of first instead of forty."
    assert rows[0] == f"The problem of Table 1 Holds in part {scale} 1 of 3, 1 too short to tell 12 min 34 s"
    assert rows[1] == f"On {NASTY} Does not hold here 0 of 1 1.0 s"
    assert "Checks that hold: 1 of 3, 1 too short to tell. Duration: 12 min 34 s." in text_of(page)
    assert page.locator(".study .agreement").all_inner_texts() == ["Holds in part", "Does not hold here"]
    assert page.locator(".study").first.locator(".checks .status").all_inner_texts() == [
        "Holds",
        "Does not hold here",
        "Too short a run to tell",
    ]
    assert (
        page.locator(".checks svg, .agreement svg, .studies svg").count() == 4 + 2 + 2
    )  # a shape beside each word


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_no_text_overlaps_another(width: int, file: Path, open_page: OpenPage) -> None:
    """Finding 18: an answer such as "Too short a run to tell" is not wider than its column."""
    page = open_page(file.as_uri(), width=width)
    assert "Too short a run to tell" in text_of(page)
    assert overlapping_texts(page) == []


@pytest.mark.parametrize(
    ("quick", "checks", "head"),
    [
        (
            True,
            [HOLDS, SHORT, FAILS],
            {
                "Holds": "1 of 3 checks",
                "Does not hold here": "1 of 3 checks",
                "Too short a run to tell": "1 of 3 checks",
            },
        ),
        (
            False,
            [HOLDS, SHORT, UNKNOWN],
            {
                "Holds": "1 of 3 checks",
                "Does not hold here": "1 of 3 checks",
                "Not decided": "1 of 3 checks",
            },
        ),
        (True, [HOLDS], {"Holds": "1 of 1 checks", "Does not hold here": "0 of 1 checks"}),
    ],
)
def test_the_head_tells_a_contradiction_from_too_short_a_run(
    quick: bool,  # noqa: FBT001
    checks: list[Check],
    head: dict[str, str],
    tmp_path: Path,
    open_page: OpenPage,
) -> None:
    result = StudyResult("It is so.", checks)
    page = open_page(write(tmp_path, study("a", "A", result, 1), quick=quick).as_uri())
    terms = [text_of(term).strip() for term in page.locator(".counts dt").all()]
    values = [text_of(value).strip() for value in page.locator(".counts dd").all()]
    assert dict(zip(terms, values, strict=True)) == head
    explained = [text_of(term).strip() for term in page.locator(".meanings dt").all()]
    assert explained == [word for word, count in head.items() if word != "Holds" and count[0] != "0"]


@pytest.mark.parametrize(
    ("checks", "quick", "word"),
    [
        ([HOLDS, HOLDS], True, "Holds"),
        ([HOLDS, UNKNOWN], False, "Holds in part"),
        ([HOLDS, UNKNOWN], True, "Too short a run to tell"),
        ([HOLDS, FAILS], True, "Holds in part"),
        ([HOLDS, SHORT], True, "Too short a run to tell"),
        ([HOLDS, SHORT], False, "Holds in part"),
        ([SHORT], False, "Does not hold here"),
        ([FAILS], True, "Does not hold here"),
        ([UNKNOWN], False, "Not checked"),
        ([], True, "Not checked"),
    ],
)
def test_the_agreement_follows_from_the_checks(
    checks: list[Check],
    quick: bool,  # noqa: FBT001
    word: str,
    tmp_path: Path,
) -> None:
    result = StudyResult("It is so.", checks)
    source = write(tmp_path, study("a", "A", result, 1), quick=quick).read_text("utf-8")
    agreement = re.search(r'<p class="agreement">(.*?)</p>', source, re.DOTALL)
    assert agreement is not None
    assert re.sub(r"<[^>]*>|\s+", " ", agreement[1]).strip() == word


@on_screens
@in_schemes
def test_it_can_be_used_at_any_width_in_both_schemes(
    width: int, scheme: Scheme, file: Path, open_page: OpenPage
) -> None:
    page = open_page(file.as_uri(), width=width, scheme=scheme)
    assert not scrolls_sideways(page)
    assert overhanging(page) == []
    shown = images(page)
    assert [figure["kind"] for figure in shown] == [f"on-{scheme}"] * 4
    for figure in shown:
        left, right, height = figure["place"]
        assert figure["loaded"]
        assert height > 100
        assert 0 <= figure["box"][0] < left < right
        assert figure["box"][1] <= width
        assert right <= figure["box"][1] or figure["scrolls"]
    assert [figure["place"][1] <= width for figure in shown] == [width == 1440, True, True, width == 1440]
    assert {name: value for name, value in contrasts(page).items() if value < 4.5} == {}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == {
        "light": "rgb(252, 252, 251)",
        "dark": "rgb(18, 20, 22)",
    }[scheme]  # fmt: skip


@in_schemes
def test_an_edge_with_hidden_content_is_shaded(scheme: Scheme, file: Path, open_page: OpenPage) -> None:
    page = open_page(file.as_uri(), width=390, scheme=scheme)
    for box in (page.locator(".plot.wide").first, page.locator(".box:not(.plot)").first):
        there_is_more = right_edge(box)
        box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
        assert abs(there_is_more - right_edge(box)) > 10
    wide = open_page(file.as_uri(), width=1440, scheme=scheme).locator(".plot.wide").first
    whole = right_edge(wide)
    wide.evaluate("box => { box.style.background = getComputedStyle(box).backgroundColor; }")
    assert right_edge(wide) == whole


@in_schemes
def test_it_prints_light_and_whole(scheme: Scheme, file: Path, open_page: OpenPage) -> None:
    page = open_page(file.as_uri(), width=PAPER, scheme=scheme)
    page.emulate_media(media="print", color_scheme=scheme)
    assert [figure["kind"] for figure in images(page)] == ["on-light"] * 4
    assert all(figure["loaded"] and figure["place"][1] <= PAPER for figure in images(page))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert {name: value for name, value in contrasts(page).items() if value < 4.5} == {}
    assert overhanging(page) == []  # nothing scrolls on paper
    assert (
        page.locator(".box").evaluate_all("boxes => boxes.map(box => getComputedStyle(box).overflowX)")
        == ["visible"] * 6
    )
    assert (
        page.locator("a[href^=http]").evaluate("link => getComputedStyle(link).textDecorationLine") == "none"
    )


def test_headings_are_in_order(file: Path, open_page: OpenPage) -> None:
    levels = heading_levels(open_page(file.as_uri()))
    assert levels == [1, 2, 2, 3, 3, 3, 2, 3, 3, 3]


def test_it_can_be_used_with_the_keyboard(file: Path, open_page: OpenPage) -> None:
    page = open_page(file.as_uri(), width=390)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the results")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="The problem of Table 1")
    expect(link).to_be_focused()
    assert link.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # to the study with a name that an address must not contain
    expect(page.get_by_role("heading", name=f"On {NASTY}")).to_be_in_viewport(ratio=1)


def test_numbers_are_right_aligned_and_tabular(file: Path, open_page: OpenPage) -> None:
    cell = open_page(file.as_uri()).get_by_role("cell", name="600.00")
    styles = cell.evaluate(
        "cell => [getComputedStyle(cell).textAlign, getComputedStyle(cell).fontVariantNumeric]"
    )
    assert styles == ["right", "tabular-nums"]


def test_a_column_is_numeric_only_if_all_its_cells_are() -> None:
    columns = {
        "number": ["1", "−2.5", "1e-6", "12 min", "[0.1, 0.2]", "≤ 3%", "", "–", "nan", "-inf"],
        "short": ["1", "Ad 2"],
        "text": ["1", "Ad 2 to some of them, Ad 1 to others"],
    }
    for kind, cells in columns.items():
        assert column_kinds(Table("A table", ["a"], [[cell] for cell in cells])) == [kind]
    assert column_kinds(Table("A table", ["a", "b"], [["–", ""]])) == ["short", "short"]
    assert column_kinds(Table("A table", ["a"], [])) == ["short"]


def test_the_wheel_contains_the_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        packed = set(wheel.namelist())
    assert {
        "banditrank/experiments/templates/report.html",
        *(f"banditrank/_report_page/templates/{name}" for name in ("page.html", "macros.html", "report.css")),
    } <= packed
