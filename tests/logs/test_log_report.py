"""The report of a log: complete, without unknowable numbers, and readable in a browser."""

import errno
import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import OpenPage
from helpers.figure_checks import check_report_figure
from helpers.page_measures import (
    contrasts,
    heading_levels,
    images,
    overhanging,
    overlapping_texts,
    scrolls_sideways,
)
from helpers.simulated_logs import make_log_problem, simulate_visits

from banditrank._report_page.rendering import RenderedFigure
from banditrank.counts import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.logs import LogReport, _report, log_report
from banditrank.logs._report_figures import report_figures
from banditrank.logs._report_tables import report_sections

NASTY = """<script>alert("$1 & it's")</script>"""
N_VISITS = 3000


def make_cube(kind: str = "uniform") -> ClickCube:
    """Return the cube of a simulated log, of which the first item has a nasty name."""
    rng = np.random.default_rng(5)
    problem = make_log_problem(2, n_items=5, n_positions=3)
    visits = simulate_visits(problem, "uniform", N_VISITS, "position-based", rng)
    items, clicks = visits.items, visits.clicks
    if kind == "fixed":
        items = np.tile([0, 1, 2], (N_VISITS, 1))
        clicks = rng.random(items.shape) < [0.4, 0.3, 0.1]
    if kind == "single":
        items, clicks = items[:, :1], clicks[:, :1]
    if kind == "alone":
        items = np.where(np.arange(3) == (np.arange(N_VISITS) % 3)[:, None], visits.user_type[:, None], -1)
    if kind == "all":
        clicks = np.ones_like(clicks)
    if kind == "none":
        clicks = np.zeros_like(clicks)
    if kind == "shuffled":
        rows, order = np.arange(N_VISITS)[:, None], np.argsort(rng.random(items.shape), axis=1)
        items, clicks = items[rows, order], clicks[rows, order]
    return ClickCube.from_visits(
        visits.user_type,
        items,
        clicks,
        user_types=("new", "returning"),
        item_names=[NASTY, *(f"item-{j}" for j in range(2, 6))],
        period=np.arange(N_VISITS) * 3 // N_VISITS,
        periods=("2026-03-01", "2026-03-02", "2026-03-03"),
    )


@pytest.fixture(scope="module")
def report() -> LogReport:
    return log_report(make_cube())


@pytest.fixture(scope="module")
def page(report: LogReport, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.save(path)
    return path


def test_the_report_has_all_parts(report: LogReport) -> None:
    document = report.to_dict()
    json.dumps(document, allow_nan=False)
    assert document["verdict"] == report.diagnosis.verdict
    assert document["user_types"]["recommended"] == ["user_type"]
    names = [target["name"] for target in document["evaluation"]["targets"]]
    assert names == ["current", "personalized", "equal:utilitarian", "equal:nash"]
    assert {price["target"] for price in document["evaluation"]["price_of_equality"]} == set(names[2:])
    assert set(report.rankings) == set(names[1:])
    assert {"diagnosis", "estimates", "user_types", "evaluation"} == set(report.to_frames())
    assert report.diagnosis.verdict in str(report)


def test_losses_by_type_are_those_of_each_utility(report: LogReport) -> None:
    """Finding 6: the report lists what each user type loses by the ranking of each utility."""
    evaluation = report.evaluation.evaluation
    assert evaluation is not None
    sections = {section.id: section for section in report_sections(report)}
    _, losses = sections["rankings"].tables
    assert losses.columns == ["user type", "equal:utilitarian", "equal:nash"]
    for number, price in enumerate(evaluation.prices, 1):
        equal, best = (evaluation[name].estimates["model"].values for name in (price.target, price.reference))
        expected = [f"{share:.1%}" for share in 1 - equal / best]
        assert price.estimator == "model"
        assert [row[number] for row in losses.rows] == expected


def test_figures_are_files(report: LogReport, tmp_path: Path) -> None:
    written = report.save_figures(tmp_path / "figures")
    names = ("positions", "items", "evaluation", "periods")
    assert {path.name for path in written} == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert all(path.stat().st_size > 1000 for path in written)


DIFFICULT_LOGS = {
    "small": {"n_user_types": 1, "n_items": 3, "n_positions": 2, "n_visits": 500, "n_periods": 1},
    "odd": {"n_user_types": 3, "n_items": 6, "n_positions": 2, "n_visits": 1500, "n_periods": 31},
    "many": {"n_user_types": 6, "n_items": 30, "n_positions": 12, "n_visits": 4000, "n_periods": 60},
}


@pytest.mark.parametrize("name", DIFFICULT_LOGS)
def test_figures_show_all_estimates_and_texts(name: str) -> None:
    """Finding 5: estimates lie inside their axes and texts do not overlap, with long names and panels of
    different ranges.
    """
    size = dict(DIFFICULT_LOGS[name])
    n_visits, n_periods = size.pop("n_visits"), size.pop("n_periods")
    problem = make_log_problem(2, means=(0.05, 0.6), **size)
    visits = simulate_visits(problem, "uniform", n_visits, "position-based", np.random.default_rng(5))
    cube = ClickCube.from_visits(
        visits.user_type,
        visits.items,
        visits.clicks,
        user_types=[f"a $very long name of a user type, {i}" for i in range(problem.n_user_types)],
        item_names=[f"a $very long name of an item, {j}" for j in range(problem.n_items)],
        period=np.arange(n_visits) * n_periods // n_visits,
        periods=[f"2026-{1 + n // 28:02d}-{1 + n % 28:02d}" for n in range(n_periods)],
    )
    figures = report_figures(log_report(cube))
    drawn = {figure.name: check_report_figure(figure) for figure in figures}
    assert list(drawn) == ["positions", "items", "evaluation", "periods"][: 3 + (n_periods > 1)]
    limits = {axes.get_xlim() for axes in drawn["items"].axes}
    assert len(limits) == 1, "panels are compared on the same scale"


def test_user_types_without_known_items_have_no_panel() -> None:
    """Finding 5: the scale of the panels is that of the items that are known; a type may have none."""
    rng = np.random.default_rng(1)
    user_type = np.repeat([0, 1], [4000, 30])
    items = np.argsort(rng.random((4030, 6)), axis=1)[:, :3]
    clicks = (rng.random(items.shape) < [0.4, 0.2, 0.1]) & (user_type == 0)[:, None]
    figures = report_figures(log_report(ClickCube.from_visits(user_type, items, clicks)))
    drawn = {figure.name: check_report_figure(figure) for figure in figures}
    assert [axes.get_title(loc="left") for axes in drawn["items"].axes] == ["type-1"]


def test_a_file_in_place_of_the_directory_of_figures_is_refused(report: LogReport, tmp_path: Path) -> None:
    directory = tmp_path / ("long" * 20)  # a path whose end is shown
    directory.mkdir()
    (directory / "figures").write_text("mine")
    with pytest.raises(
        InvalidInputError, match=r"^figures must be writable \(file exists\), got .*/figures'$"
    ):
        report.save(directory / "report.html", figures=directory / "figures")
    assert list(directory.iterdir()) == [directory / "figures"]


def test_a_json_file_on_a_full_device_is_refused_before_the_page_is_replaced(
    report: LogReport, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text("earlier")
    with pytest.raises(InvalidInputError, match=r"^json_file must be writable \(no space left on device\)"):
        report.save(tmp_path / "report.html", json_file="/dev/full")
    assert (tmp_path / "report.html").read_text() == "earlier"


def test_a_full_disk_leaves_all_earlier_files(
    report: LogReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, figures, values = tmp_path / "report.html", tmp_path / "figures", tmp_path / "report.json"
    figures.mkdir()
    earlier = [page, values, figures / "items.png"]
    for path in earlier:
        path.write_text("earlier")
    write = Path.write_bytes

    def write_until_full(path: Path, content: bytes) -> int:
        if ".svg" in path.name:
            write(path, content[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", write_until_full)
    with pytest.raises(
        InvalidInputError, match=r"^figures must be writable \(no space left on device\), got "
    ):
        report.save(page, figures=figures, json_file=values)
    assert {path.read_text() for path in earlier} == {"earlier"}
    assert {*tmp_path.iterdir(), *figures.iterdir()} == {*earlier, figures}
    monkeypatch.undo()
    report.save(page, figures=figures, json_file=values)
    assert json.loads(values.read_text()) == report.to_dict()
    assert (figures / "items.svg").read_bytes().startswith(b"<?xml")


def test_the_file_is_a_page_or_json(report: LogReport, tmp_path: Path) -> None:
    report.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == report.diagnosis.verdict
    with pytest.raises(InvalidInputError, match=r"report file must end in .html or .json, got 'a.pdf'"):
        report.save("a.pdf")


def test_the_page_loads_nothing_and_escapes_names(page: Path) -> None:
    source = page.read_text(encoding="utf-8")
    assert "<script" not in source
    assert all(address.startswith("data:") for address in re.findall(r'src="([^"]*)"', source))
    assert not [link for link in re.findall(r'href="([^"]*)"', source) if re.match(r"\w+:|//", link)][1:]


@pytest.mark.parametrize(
    ("metadata", "said"),
    [({"period": "day"}, "The log has a single day: drift"), ({}, "Count it with a time column (--time).")],
)
def test_the_page_says_why_drift_cannot_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: dict[str, str], said: str
) -> None:
    monkeypatch.setattr(_report, "render_figure", lambda figure: RenderedFigure(figure, b"", b"", b""))
    log_report(replace(make_cube("fixed").merge_periods(), metadata=metadata)).save(tmp_path / "report.html")
    assert said in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_page_says_what_it_is_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_report, "render_figure", lambda figure: RenderedFigure(figure, b"", b"", b""))
    selection = ["the 5 most shown of 9 items", "positions 1 to 3", "from 2026-03-01"]
    cube = replace(make_cube("fixed"), metadata={"period": "day", "selection": selection})
    log_report(cube).save(tmp_path / "report.html")
    text = " ".join(re.sub(r"<[^>]*>|\s+", " ", (tmp_path / "report.html").read_text()).split())
    assert "Days 2026-03-01 to 2026-03-03" in text
    assert "Part of the log: the 5 most shown of 9 items; positions 1 to 3; from 2026-03-01." in text
    assert (
        "No change was found in any of 6 pairs of an item and a user type with enough clicks over the 3 days."
        in text
    )


def test_tables_are_not_cut_at_1200_pixels(page: Path, open_page: OpenPage) -> None:
    opened = open_page(page.as_uri(), width=1200)
    wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    assert opened.locator(".box:has(table)").evaluate_all(wide) == 0


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_page_is_readable(page: Path, open_page: OpenPage, width: int, scheme: str) -> None:
    opened = open_page(page.as_uri(), width=width, scheme=scheme)
    assert not scrolls_sideways(opened)
    assert overhanging(opened) == []
    assert overlapping_texts(opened) == []
    assert min(contrasts(opened).values()) >= 4.5
    levels = heading_levels(opened)
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    shown = images(opened)
    assert len(shown) == 4
    assert all(image["loaded"] and image["kind"] == f"on-{scheme}" for image in shown)
    text = opened.inner_text("body")
    for words in (
        *("Verdict", "Data quality", "What a position is worth", "Items of each user type"),
        *("Which user types matter", "Price of equality of equal:nash", "What rankings would have earned"),
        *("Drift", NASTY),
    ):
        assert words in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("fixed", "a fixed layout"),
        ("single", "All displays are at position 1"),
        ("alone", "Each user type was shown a single item"),
        ("all", "displays without a click are probably missing"),
        ("none", "The log has no clicks"),
        ("shuffled", "Clicks do not depend on the position"),
    ],
)
def test_what_cannot_be_known_is_no_number(
    kind: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_report, "render_figure", lambda figure: RenderedFigure(figure, b"", b"", b""))
    report = log_report(make_cube(kind))
    report.save(tmp_path / "report.html")
    text = re.sub(r"<[^>]*>|\s+", " ", (tmp_path / "report.html").read_text().partition("</style>")[2])
    assert words in text
    if kind == "single":  # click rates compare the items of one position
        assert set(report.rankings) == {"personalized", "equal:utilitarian", "equal:nash"}
    elif kind != "shuffled":
        assert "Price of equality of" not in text
        assert report.rankings == {}
    if kind != "alone":
        assert not report.fit or not report.fit.is_position_identified.any()
        assert "Worth of positions:" not in text
    if kind in ("all", "none"):
        assert report.fit is None
        assert report.evaluation.evaluation is None
    document = json.dumps(report.to_dict(), allow_nan=False)
    assert words in document
