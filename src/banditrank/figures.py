"""How figures look and how they are written to files."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditrank.errors import InvalidInputError
from banditrank.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

# The same on a dark page: lighter, and white for black.
COLOURS_ON_DARK = ("#56b4e9", "#ff8f4a", "#2fd3a0", "#e7a3c8", "#9ad6ff", "#f2c14e", "#ffffff")


def check_plot_path(path: Path) -> None:
    """Raise an error unless the file's ending names a kind of picture.

    Examples
    --------
    >>> check_plot_path(Path("regret.svg"))
    """
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInputError("plot file", "must end in .png, .svg or .pdf", str(path))


def escape_mathtext(text: str) -> str:
    """Return a name that Matplotlib will not read as mathematics."""
    return text.replace("$", r"\$")


def style_axes(axes: "Axes") -> None:
    """Give axes a faint grid, no box, and plain numbers where a scale is not linear."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "linear":
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


@contextmanager
def ignore_missing_glyphs() -> Iterator[None]:
    """Let names in a script that the font lacks pass without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def write_figure(figure: "Figure", path: Path, description: str | None = None) -> None:
    """Write a figure to a file; its ending says which kind. A description is kept beside the picture."""
    kind = path.suffix.removeprefix(".").lower()
    metadata = None if description is None else {"Subject" if kind == "pdf" else "Description": description}
    try:
        with ignore_missing_glyphs(), atomic_write(path) as new:
            figure.savefig(new, format=kind, metadata=metadata)
    except OSError as error:
        raise InvalidInputError.from_os("plot file", "must be writable", path, error) from None


@contextmanager
def theme(*, dark: bool = False) -> Iterator[None]:
    """Have figures drawn in colours for a light or a dark page, the same each time to the byte."""
    import matplotlib as mpl  # noqa: PLC0415 - heavy

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
