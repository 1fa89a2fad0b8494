"""How figures look and how they are written to files."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by everybody, also in print.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


def check_plot_path(path: Path) -> None:
    """Raise an error unless the file's ending names a kind of picture.

    Examples
    --------
    >>> check_plot_path(Path("regret.svg"))
    """
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInputError("plot file", "must end in .png, .svg or .pdf", str(path))


def plain(text: str) -> str:
    """Return a name that Matplotlib will not read as mathematics."""
    return text.replace("$", r"\$")


def tidy(axes: "Axes") -> None:
    """Give axes a faint grid, no box, and plain numbers where a scale is not linear."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() != "linear":
            axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


@contextmanager
def any_script() -> Iterator[None]:
    """Let names in a script that the font lacks pass without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        yield


def write_figure(figure: "Figure", path: Path) -> None:
    """Write a figure to a file; its ending says which kind."""
    try:
        with any_script():
            figure.savefig(path)
    except OSError as error:
        raise InvalidInputError.from_os("plot file", "must be writable", path, error) from None
