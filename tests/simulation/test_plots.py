"""Figures of results: panels, bands, scales, colours, sizes and styles."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from helpers.figure_checks import check_figure
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import t as student

from banditrank import (
    InvalidInputError,
    MissingDependencyError,
    UnknownNameError,
    draw_regret,
    kdd2012,
    make_problem,
    plot_regret,
    save_plot,
    simulate,
)
from banditrank._figures import COLOURS, POLICIES, policy_styles
from banditrank.estimators._distributions import student_quantile
from banditrank.policies._catalog import AUTO, ORDERED_POLICY_NAMES, POLICY_NAMES
from banditrank.simulation._plots import _overview, _panels, draw_final_regret
from banditrank.simulation._result import SimulationResult
from banditrank.simulation._student_t import interval_radius

Make = Callable[..., SimulationResult]


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    return simulate("random", kdd2012(), 100, 3)


@pytest.fixture(scope="module")
def make(result: SimulationResult) -> Make:
    """Return a result of a policy that was not run."""

    def make(
        policy: str = "ucb-rank", treatment: str = "personalized", **description: Any
    ) -> SimulationResult:
        utility = description.pop("utility", "utilitarian" if treatment == "equal" else None)
        changed = {"policy": policy, "treatment": treatment, "utility": utility, **description}
        return replace(result, policy={**result.policy, **changed})

    return make


def colours(figure: Figure) -> list[dict[str, str]]:
    """Return the colour of each label of each panel."""
    return [
        {line.get_label(): to_hex(line.get_color()) for line in axes.get_legend().legend_handles}
        for axes in figure.axes
    ]


@pytest.mark.parametrize("regrets", [(601, 616), (0.2, 0.3), (90, 120), (3, 4000), (0, 0), (0, 5000)])
def test_final_regrets_of_any_spread_have_a_scale(
    result: SimulationResult, regrets: tuple[float, float]
) -> None:
    axes = Figure().add_subplot()
    ends = np.array([regrets[0], np.mean(regrets), regrets[1]])
    draw_final_regret(axes, [replace(result, regret=np.tile(ends[:, None], result.regret.shape[1]))])
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2


def test_regrets_relative_to_different_optima_have_panels_of_their_own(make: Make) -> None:
    results = [
        make(),
        make("greedy-rank"),
        make(treatment="equal"),
        make(treatment="equal", utility="nash"),
    ]
    figure = plot_regret(results, title="all")
    headings = ["personalized treatment", "equal treatment, utilitarian", "equal treatment, nash"]
    assert [axes.get_title("left") for axes in figure.axes] == headings
    assert [len(axes.get_legend().get_texts()) for axes in figure.axes] == [2, 1, 1]
    assert figure.get_suptitle() == "all"
    axes = Figure().add_subplot()
    message = "results must have one criterion on the same axes, got 'personalized treatment; equal treatment"
    with pytest.raises(InvalidInputError, match=message):
        draw_regret(axes, results)
    assert not axes.lines


LONG_LABELS = [f"A very long label that says everything about a result, number {n}" for n in range(4)]
LONG_TITLE = "A very long title that says everything about a figure and the results in it, and then goes on"
DIFFICULT_OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "column": {"size": "column", "band": "confidence"},
    "page": {"size": "page", "labels": LONG_LABELS, "title": LONG_TITLE},
    "linear": {"x_scale": "linear", "y_scale": "linear", "labels": LONG_LABELS},
}


@pytest.mark.parametrize("name", DIFFICULT_OPTIONS)
@pytest.mark.parametrize("is_single", [True, False])
def test_curves_and_texts_are_inside_and_apart(
    make: Make,
    is_single: bool,  # noqa: FBT001
    name: str,
) -> None:
    """Finding 5: curves lie inside their axes and texts do not overlap, with long labels and many panels."""
    options = dict(DIFFICULT_OPTIONS[name])
    results = [make(coefficient=n / 10) for n in range(1, 5)]
    if not is_single:
        results = [
            make(),
            make("greedy-rank"),
            make(treatment="equal"),
            make(treatment="equal", utility="nash"),
        ]
    check_figure(plot_regret(results, **options), is_cut_left=True)
    if "size" not in options:
        panels = _panels(results)
        check_figure(_overview(results, panels, LONG_TITLE, options), is_cut_left=True)


def test_problems_have_panels_of_their_own(make: Make) -> None:
    other = make_problem("conflict", n_user_types=2, n_items=3, n_positions=2, seed=0)
    figure = plot_regret([make(), replace(make(), problem=other)])
    assert [axes.get_title("left").partition(":")[0] for axes in figure.axes] == ["kdd2012", other.name]


def test_a_policy_has_the_same_colour_in_every_panel_and_figure(make: Make) -> None:
    both = [make(coefficient=0.25), make("greedy-rank", "equal"), make("ucb-rank", "equal", coefficient=0.5)]
    first, second = colours(plot_regret(both))
    assert first["ucb-rank-0.25"] == second["ucb-rank-0.5"] == COLOURS[2]
    (alone,) = colours(plot_regret([make("mine"), make("ucb-rank"), make("thompson-rank")]))
    assert alone["ucb-rank"] == COLOURS[2]
    assert alone["thompson-rank"] == COLOURS[0]
    assert len(set(alone.values())) == 3


def test_variants_of_a_policy_have_different_colours(make: Make) -> None:
    variants = [make(coefficient=number / 10) for number in range(1, 8)]
    (found,) = colours(plot_regret(variants))
    assert len(set(found.values())) == 7


def test_every_policy_of_the_catalog_has_a_line_style_of_its_own() -> None:
    assert sorted(POLICIES) == sorted({*POLICY_NAMES} - {AUTO, *ORDERED_POLICY_NAMES})
    with mpl.rc_context({"axes.prop_cycle": f"cycler(color={list(COLOURS)})"}):
        assert len(set(policy_styles(POLICIES))) == len(POLICIES)
        assert policy_styles([AUTO]) == policy_styles(["thompson-rank"])
    with mpl.rc_context({"axes.prop_cycle": "cycler(linestyle=['-', '--'])"}):
        assert len(set(policy_styles(POLICIES[:4]))) == 4
    assert [style.colour for style in policy_styles(POLICIES[:7])] == list(COLOURS)


def test_given_labels_and_colours_are_used(make: Make) -> None:
    results = [make(), make("greedy-rank"), make(treatment="equal")]
    figure = plot_regret(results, labels=["$A$", "B", "C"], colours=["red", "#00ff00", "blue"])
    assert colours(figure) == [{"$A$": "#ff0000", "B": "#00ff00"}, {"C": "#0000ff"}]
    for name in ("labels", "colours"):
        with pytest.raises(InvalidInputError, match=f"{name} must have one entry for each of 3 results"):
            plot_regret(results, **{name: ["red"]})


def test_the_band_is_that_of_the_replications(result: SimulationResult) -> None:
    regret = np.random.default_rng(1).gamma(2, size=(9, 1)) * result.checkpoints
    result = replace(result, regret=regret, replications=np.arange(9))

    def ends(**options: Any) -> tuple[float, float, float]:
        (axes,) = result.plot(**options).axes
        band = axes.collections[0].get_paths()[0].vertices
        last = band[band[:, 0] == result.horizon, 1]
        return last.min(), axes.lines[-1].get_ydata()[-1], last.max()

    low, high = student.interval(0.9, 8, regret[:, -1].mean(), regret[:, -1].std(ddof=1) / 3)
    assert ends(band="confidence", level=0.9) == pytest.approx((low, regret[:, -1].mean(), high))
    assert ends(band="quantiles") == pytest.approx(np.quantile(regret[:, -1], (0.1, 0.5, 0.9)))
    (axes,) = result.plot().axes
    assert np.array([line.get_ydata()[-1] for line in axes.lines[:-1]]) == pytest.approx(regret[:, -1])
    assert axes.lines[-1].get_ydata()[-1] == pytest.approx(np.median(regret[:, -1]))


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_by_students_distribution(level: float) -> None:
    """Finding 9: there is one quantile of Student's t, and intervals of means are made of it."""
    for degrees in (1, 2, 3, 4, 19, 20, 999):
        expected = student.ppf((1 + level) / 2, degrees)
        assert student_quantile((1 + level) / 2, degrees) == pytest.approx(expected)
        radius = interval_radius(2.0, degrees + 1, level)
        assert radius == pytest.approx(expected * 2.0 / np.sqrt(degrees + 1))


def test_a_single_replication_has_no_spread(result: SimulationResult) -> None:
    single = replace(result, regret=result.regret[:1], replications=np.arange(1))
    assert single.mean_interval().tolist() == [single.mean.tolist()] * 2
    for band in ("replications", "quantiles", "confidence"):
        single.plot(band=band)
    with pytest.raises(InvalidInputError, match="level must be between 0 and 1, got 95"):
        result.mean_interval(95)


@pytest.mark.parametrize("x_scale", ["linear", "log"])
@pytest.mark.parametrize("y_scale", ["linear", "log"])
def test_scales_and_axis_labels_are_those_given(make: Make, x_scale: str, y_scale: str) -> None:
    (axes,) = make().plot(x_scale=x_scale, y_scale=y_scale, x_label="t", y_label="R", title="one").axes
    assert axes.get_xscale() == x_scale
    assert axes.get_yscale() == {"linear": "linear", "log": "symlog"}[y_scale]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left")) == ("t", "R", "one")


@pytest.mark.parametrize("size", [None, "column", "page", (5, 3)])
@pytest.mark.parametrize("x_scale", ["linear", "log"])
def test_a_legend_covers_no_median(make: Make, size: Any, x_scale: str) -> None:
    results = [
        replace(make(name), regret=scale * np.sqrt(make().checkpoints) * np.ones((3, 1)))
        for scale, name in enumerate(POLICIES[:5], 1)
    ]
    figure = plot_regret(results, size=size, x_scale=x_scale, y_scale="linear", band="quantiles")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    box = axes.get_legend().get_window_extent()
    for line in axes.lines:
        assert not any(box.contains(x, y) for x, y in axes.transData.transform(line.get_xydata()))


def test_names_of_options_are_checked(make: Make) -> None:
    with pytest.raises(UnknownNameError, match="band must be one of replications, quantiles, confidence"):
        make().plot(band="std")
    with pytest.raises(UnknownNameError, match="y_scale must be one of linear, log"):
        make().plot(y_scale="logarithmic")
    with pytest.raises(InvalidInputError, match=r"level must be between 0 and 1, got 1\.5"):
        make().plot(level=1.5)


@pytest.mark.parametrize("size", ["row", "53", (3,), (0, 3), (3, float("nan")), (3, "a"), 5])
def test_invalid_sizes_are_rejected(make: Make, size: Any) -> None:
    with pytest.raises(InvalidInputError, match="size must be column or page, or a width and a height of 1"):
        make().plot(size=size)


def test_a_column_is_legible(make: Make) -> None:
    figure = plot_regret([make(), make(treatment="equal")], size="column")
    assert figure.get_size_inches().tolist() == [3.3, 5.0]
    first, second = (axes.get_subplotspec() for axes in figure.axes)
    assert (first.rowspan.start, second.rowspan.start) == (0, 1), "one below the other"
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(mpl.text.Text) if text.get_text() and text.get_visible()]
    assert min(text.get_fontsize() for text in texts) >= 7
    box = figure.get_tightbbox()  # in inches
    assert 0 <= box.x0 < box.x1 <= 3.3


def test_panels_of_a_page_are_side_by_side(make: Make) -> None:
    figure = plot_regret([make(), make(treatment="equal")], size="page")
    first, second = (axes.get_subplotspec() for axes in figure.axes)
    assert (first.colspan.start, second.colspan.start) == (0, 1)


def test_a_style_prevails_over_the_settings_of_figures(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "paper.mplstyle"
    path.write_text("axes.labelsize: 13\n")
    own = {"axes.prop_cycle": "cycler(color=['ff00ff'])", "axes.grid": False}
    before = dict(mpl.rcParams)
    figure = make().plot(style=[path, own])
    (axes,) = figure.axes
    assert axes.xaxis.label.get_fontsize() == 13
    assert colours(figure) == [{"ucb-rank": "#ff00ff"}]
    assert not axes.xaxis.get_gridlines()[0].get_visible()
    assert make().plot(style="dark_background").get_facecolor() == (0, 0, 0, 1)
    assert dict(mpl.rcParams) == before


def test_settings_of_the_caller_are_kept(make: Make) -> None:
    with mpl.rc_context({"axes.labelsize": 17, "pdf.fonttype": 3}):
        (axes,) = make().plot(size="column").axes
        assert axes.xaxis.label.get_fontsize() == 17
    assert make().plot(size="column").axes[0].xaxis.label.get_fontsize() == 8


@pytest.mark.parametrize("style", ["none-such", "missing.mplstyle", {"axes.none": 1}, {"font.size": "a"}, 3])
def test_invalid_styles_are_rejected(make: Make, style: Any) -> None:
    with pytest.raises(
        InvalidInputError, match="style must be a name, file or mapping that Matplotlib accept"
    ):
        make().plot(style=style)


def test_a_notebook_shows_a_figure_and_pyplot_does_not_know_it(make: Make) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = make().plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not pyplot.get_fignums()


@pytest.mark.parametrize("is_saved_by_hand", [True, False])
def test_fonts_of_a_pdf_are_embedded_as_truetype(make: Make, tmp_path: Path, is_saved_by_hand: bool) -> None:  # noqa: FBT001
    path = tmp_path / "regret.pdf"
    with mpl.rc_context({"pdf.compression": 0}):
        if is_saved_by_hand:
            make().plot(size="column").savefig(path)
        else:
            save_plot([make()], path, size="column")
    content = path.read_bytes()
    assert b"/FontFile2" in content, "the font's program is in the file"
    assert b"/CIDFontType2" in content
    assert b"/Subtype /Type3" not in content


def test_text_of_an_svg_needs_no_font(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "regret.svg"
    save_plot([make()], path, size="column")
    content = path.read_text()
    assert "<text" not in content
    assert "font-family" not in content
    assert "kdd2012: 100 rounds" in content, "alternative text"


def test_files_are_reproducible_to_the_byte(make: Make, tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
        for path in (first, second):
            save_plot([make()], path, size="column")
        assert first.read_bytes() == second.read_bytes(), ending


def test_a_png_has_the_pixels_asked_for(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "regret.png"
    save_plot([make()], path, size=(4, 2), dpi=50)
    assert np.frombuffer(path.read_bytes()[16:24], dtype=">u4").tolist() == [200, 100]
    with pytest.raises(InvalidInputError, match="dpi must be from 10 to 2400, got 9"):
        save_plot([make()], path, dpi=9)


def test_without_a_size_the_final_regret_is_beside_the_curves(make: Make, tmp_path: Path) -> None:
    saved: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banditrank.simulation._plots.write_figure", lambda figure, *_: saved.append(figure))
        save_plot([make(), make(treatment="equal")], tmp_path / "a.png", labels=["one", "two"])
    (figure,) = saved
    assert [axes.get_xlabel() for axes in figure.axes] == ["round", "regret"] * 2
    assert [axes.get_yticklabels()[0].get_text() for axes in figure.axes[1::2]] == ["one", "two"]


def test_plotting_without_matplotlib_names_the_extra(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'banditrank\[plots\]'"):
        make().plot()
