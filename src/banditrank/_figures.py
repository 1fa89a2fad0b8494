"""Colours, theme and file output of figures."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditrank._extras import requires
from banditrank._files import atomic_write
from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Okabe and Ito's palette: safe for colour-blind readers and in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

# The same palette for dark backgrounds.
COLOURS_ON_DARK = ("#56b4e9", "#ff8f4a", "#2fd3a0", "#e7a3c8", "#9ad6ff", "#f2c14e", "#ffffff")


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


def escape_mathtext(text: str) -> str:
    """Return a text in which Matplotlib finds no mathematics: dollar signs are escaped."""
    return text.replace("$", r"\$")


def style_axes(axes: "Axes") -> None:
    """Add a faint grid, remove the box, and write the numbers of non-linear scales in full."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "linear":
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Suppress Matplotlib's warnings about characters that the font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def write_figure(figure: "Figure", path: Path, description: str | None = None) -> None:
    """Write a figure to a file in the format of its suffix.

    Parameters
    ----------
    figure
        The figure.
    path
        The file, with a suffix that `check_plot_path` accepts.
    description
        Alternative text, written to the file's metadata.

    Raises
    ------
    InvalidInputError
        If the file cannot be written.
    """
    kind = path.suffix.removeprefix(".").lower()
    metadata = None if description is None else {"Subject" if kind == "pdf" else "Description": description}
    try:
        with ignore_missing_glyphs(), atomic_write(path) as new:
            figure.savefig(new, format=kind, metadata=metadata)
    except OSError as error:
        raise InvalidInputError.from_os("plot file", "must be writable", path, error) from None


@contextmanager
def theme(*, dark: bool = False) -> Iterator[None]:
    """Set Matplotlib's colours for a light or dark background; output is reproducible to the byte."""
    with requires("plots", "plotting"):
        import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    ink = "#e6e6e6" if dark else "#1f2328"
    inks: tuple[RcKeyType, ...] = (
        "text.color",
        "axes.labelcolor",
        "axes.edgecolor",
        "axes.titlecolor",
        "xtick.color",
        "ytick.color",
    )
    settings: dict[RcKeyType, Any] = {
        **dict.fromkeys(inks, ink),
        "axes.prop_cycle": f"cycler(color={list(COLOURS_ON_DARK if dark else COLOURS)})",
        "axes.facecolor": "none",
        "figure.facecolor": "none" if dark else "white",
        "savefig.facecolor": "auto",
        "svg.hashsalt": "banditrank",
    }
    with mpl.rc_context(settings):
        yield
