"""Figures: settings, sizes, colours of policies, and file output."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from banditrank._extras import requires
from banditrank._files import atomic_write
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

    from banditrank._plot_figure import PlotFigure

SizeName: TypeAlias = Literal["column", "page"]
Size: TypeAlias = SizeName | tuple[float, float]
"""Width and height in inches, or the width of a paper's column (3.3 inches) or page (7 inches)."""

OneStyle: TypeAlias = str | Path | Mapping[str, Any]
Style: TypeAlias = OneStyle | Sequence[OneStyle]
"""Matplotlib style: a name, the path of a style file, a mapping of rcParams, or several of these."""

# Okabe and Ito's palette: safe for colour-blind readers and in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

# The same palette for dark backgrounds.
COLOURS_ON_DARK = ("#56b4e9", "#ff8f4a", "#2fd3a0", "#e7a3c8", "#9ad6ff", "#f2c14e", "#ffffff")

POLICIES = (
    *("thompson-rank", "greedy-rank", "ucb-rank", "type-blind-ucb", "oracle", "top-rank", "random"),
    *("pbm-ucb", "pbm-ts", "pbm-pie", "batch-rank", "cascade-kl-ucb", "bubble-rank", "uni-rank"),
    *("ranked-bandits", "pb-mhb", "grab", "comb-ucb1", "pmed"),
    *("type-blind-thompson-rank", "cucb", "cts", "ftrl-pbm", "nash-ucb", "cascade-ts"),
)
"""Policies in the order of their line styles: the colours of the palette, then the same ones dashed."""

_DASHES = ("-", "--", "-.", ":")
_WIDTHS: dict[SizeName, float] = {"column": 3.3, "page": 7.0}
_MIN_PANEL_WIDTH = 3.0  # inches, of panels that stand side by side
_MAX_SMALL_WIDTH = 5.0  # inches: figures below have the small settings

_SETTINGS: "dict[RcKeyType, Any]" = {
    "axes.grid": True,
    "axes.prop_cycle": f"cycler(color={list(COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.dpi": 150,
    "figure.titlesize": "large",
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "legend.title_fontsize": "small",
    "lines.linewidth": 1.8,
    "pdf.fonttype": 42,  # TrueType: many publishers reject the default, Type 3
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "banditrank",  # output is reproducible to the byte
}
_SMALL_SETTINGS: "dict[RcKeyType, Any]" = {
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8,
    "figure.titlesize": 8,
    "font.size": 8,
    "grid.linewidth": 0.4,
    "legend.fontsize": 7,
    "legend.handlelength": 1.6,
    "legend.title_fontsize": 7,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}


def check_plot_path(path: Path) -> None:
    """Check that the file's suffix names a supported format: png, svg or pdf.

    Raises
    ------
    InvalidInputError
        If it does not.

    Examples
    --------
    >>> check_plot_path(Path("regret.svg"))
    """
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInputError("plot file", "must end in .png, .svg or .pdf", str(path))


def check_dpi(dpi: float | None) -> None:
    """Check that pixels per inch are from 10 to 2400, or None.

    Raises
    ------
    InvalidInputError
        If they are not.
    """
    if dpi is not None and not 10 <= dpi <= 2400:
        raise InvalidInputError("dpi", "must be from 10 to 2400", dpi)


def escape_mathtext(text: str) -> str:
    """Return a text in which Matplotlib finds no mathematics: dollar signs are escaped."""
    return text.replace("$", r"\$")


def format_ticks(axes: "Axes") -> None:
    """Write the numbers of non-linear scales in full, with commas between thousands."""
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415 - heavy, and optional

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "linear":
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        if axis.get_scale() == "log":
            axis.set_minor_formatter(LogFormatter())  # 600 instead of 6 × 10²


class LineStyle(NamedTuple):
    """Colour and dashes of a curve."""

    colour: Any
    dashes: str


def policy_styles(policies: Sequence[str]) -> list[LineStyle]:
    """Return a line style for each policy.

    Colours are those of Matplotlib's settings, if they are not its default.
    A policy of the catalog has the same style in every figure. Others, and further variants of the same
    policy, take the styles that are left.

    Parameters
    ----------
    policies
        Names of policies, or names with a suffix such as ``ucb-rank-0.5``.
    """
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    cycle = mpl.rcParams["axes.prop_cycle"]
    if cycle == mpl.rcParamsDefault["axes.prop_cycle"]:
        palette: Sequence[Any] = COLOURS
    else:
        palette = cycle.by_key().get("color", [mpl.rcParams["text.color"]])
    slots: dict[str, int] = {}
    names = dict.fromkeys(policies)
    for name in names:
        own = _own_slot(name)
        if own is not None and own not in slots.values():
            slots[name] = own
    for name in names:
        if name not in slots:
            slots[name] = next(
                slot for slot in range(len(POLICIES) + len(names)) if slot not in slots.values()
            )
    return [
        LineStyle(palette[slot % len(palette)], _DASHES[slot // len(palette) % len(_DASHES)])
        for slot in (slots[name] for name in policies)
    ]


def _own_slot(name: str) -> int | None:
    name = "thompson-rank" if name == "auto" else name
    found = [known for known in POLICIES if name == known or name.startswith(f"{known}-")]
    return POLICIES.index(max(found, key=len)) if found else None


def count_columns(width: float, n_panels: int) -> int:
    """Return how many panels stand side by side in a figure of a width in inches.

    Examples
    --------
    >>> count_columns(3.3, 2), count_columns(7.0, 2), count_columns(7.0, 3)
    (1, 2, 2)
    """
    return max(1, min(n_panels, int(width // _MIN_PANEL_WIDTH)))


def figure_size(size: Size | None, default: tuple[float, float], n_panels: int = 1) -> tuple[float, float]:
    """Return the width and height of a figure in inches.

    Parameters
    ----------
    size
        Width and height, a `SizeName`, or None for the default.
    default
        Width of the figure, and height of a row of panels.
    n_panels
        Number of panels.

    Raises
    ------
    InvalidInputError
        If the size is neither a name nor two numbers from 1 to 100.

    Examples
    --------
    >>> figure_size("column", (7.5, 4.2)), figure_size((4, 3), (7.5, 4.2)), figure_size(None, (7.5, 4.2))
    ((3.3, 2.5), (4.0, 3.0), (7.5, 4.2))
    """
    if size is None or (isinstance(size, str) and size in _WIDTHS):
        width, height = default if size is None else (_WIDTHS[size], 2.5)
        return width, height * -(-n_panels // count_columns(width, n_panels))
    try:
        width, height = (math.nan, math.nan) if isinstance(size, str) else map(float, size)
    except (TypeError, ValueError):
        width = height = math.nan
    if not (1 <= width <= 100 and 1 <= height <= 100):
        names = " or ".join(get_args(SizeName))
        raise InvalidInputError("size", f"must be {names}, or a width and a height of 1 to 100 inches", size)
    return width, height


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Suppress Matplotlib's warnings about characters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


@contextmanager
def new_figure(
    size: Size | None, style: Style | None, *, default: tuple[float, float], n_panels: int = 1
) -> "Iterator[PlotFigure]":
    """Return a new figure, in the context of its settings.

    Matplotlib's own defaults are replaced by those of this package. What the caller has set, as with
    ``matplotlib.rcParams`` or ``matplotlib.style.use``, is kept, and the style prevails over both.

    Parameters
    ----------
    size, default, n_panels
        As for `figure_size`. Fonts and lines are smaller in sizes for a paper, and below 5 inches.
    style
        Matplotlib style.

    Raises
    ------
    InvalidInputError
        If the size is not valid, there is no such style, or Matplotlib rejects it.
    MissingDependencyError
        If Matplotlib is not installed.
    """
    with requires("plots", "plotting"):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 - heavy, and optional

        from banditrank._plot_figure import PlotFigure  # noqa: PLC0415 - imports Matplotlib

    width, height = figure_size(size, default, n_panels)
    settings = _settings(style, is_small=isinstance(size, str) or width < _MAX_SMALL_WIDTH)
    with mpl.rc_context(settings):
        layout = ConstrainedLayoutEngine(w_pad=0.08 if n_panels > 1 else None)  # inches; 0.04 by default
        yield PlotFigure(figsize=(width, height), layout=layout, settings=settings)


def _settings(style: Style | None, *, is_small: bool) -> "dict[RcKeyType, Any]":
    """Return the settings that differ from the current ones."""
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional
    import matplotlib.style  # noqa: PLC0415 - heavy, and optional

    ours = {**_SETTINGS, **(_SMALL_SETTINGS if is_small else {})}
    with mpl.rc_context():
        before = mpl.rcParams.copy()
        for key, value in ours.items():
            if before[key] == mpl.rcParamsDefault[key]:
                mpl.rcParams[key] = value
        if style is not None:
            try:
                matplotlib.style.use(cast("Any", style))
            except (OSError, KeyError, ValueError, TypeError) as error:
                raise InvalidInputError(
                    "style", "must be a name, file or mapping that Matplotlib accepts", style
                ) from error
        return {
            key: mpl.rcParams[key]
            for key in before
            if key != "backend" and mpl.rcParams[key] != before[key]  # reading it chooses one
        }


def write_figure(
    figure: "Figure", path: Path, description: str | None = None, dpi: float | None = None
) -> None:
    """Write a figure to a file in the format of its suffix.

    Parameters
    ----------
    figure
        The figure.
    path
        The file, with a suffix that `check_plot_path` accepts.
    description
        Alternative text, written to the file's metadata.
    dpi
        Pixels per inch of a png file; those of the figure by default.

    Raises
    ------
    InvalidInputError
        If the file cannot be written, or dpi is not from 10 to 2400.
    """
    check_dpi(dpi)
    kind = path.suffix.removeprefix(".").lower()
    undated: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
    text = {} if description is None else {"Subject" if kind == "pdf" else "Description": description}
    try:
        with ignore_missing_glyphs(), atomic_write(path) as new:
            figure.savefig(new, format=kind, metadata={**undated, **text}, dpi=dpi or "figure")
    except OSError as error:
        raise InvalidInputError.from_os("plot file", "must be writable", path, error) from None


@contextmanager
def theme(*, dark: bool = False) -> Iterator[None]:
    """Set Matplotlib's colours for a light or dark background; output is reproducible to the byte."""
    with requires("plots", "plotting"):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    ink = "#e6e6e6" if dark else "#1f2328"
    inks = (
        "text.color",
        "axes.labelcolor",
        "axes.edgecolor",
        "axes.titlecolor",
        "xtick.color",
        "ytick.color",
    )
    settings: dict[RcKeyType, Any] = {
        **_SETTINGS,
        **dict.fromkeys(cast("tuple[RcKeyType, ...]", inks), ink),
        "axes.prop_cycle": f"cycler(color={list(COLOURS_ON_DARK if dark else COLOURS)})",
        "axes.facecolor": "none",
        "figure.facecolor": "none" if dark else "white",
        "savefig.facecolor": "auto",
    }
    with mpl.rc_context(settings):
        yield
