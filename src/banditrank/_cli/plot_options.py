"""Options of plots, for commands with ``--plot``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditrank.errors import InvalidInputError

if TYPE_CHECKING:
    from banditrank._figures import Size

PlotSizeOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Size of the plot: column (3.3 inches wide), page (7 inches) or WIDTHxHEIGHT in inches, "
        "such as 5x3.",
        show_default="for a screen",
    ),
]
PlotStyleOption = Annotated[
    str | None,
    typer.Option(
        metavar="STYLE", help="Matplotlib style of the plot: a name or a file.", show_default="none"
    ),
]
PlotTitleOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Title of the plot.", show_default="problem and settings"),
]
PlotDpiOption = Annotated[
    float | None,
    typer.Option(metavar="DPI", help="Pixels per inch of a .png file, 10 to 2400.", show_default="150"),
]


def check_plot_options(plot: Path | None, **options: Any) -> dict[str, Any]:
    """Return the plot options that were given, and check them before long computations.

    Parameters
    ----------
    plot
        Value of ``--plot``.
    options
        Values of the options ``--plot-NAME``, by name; None if not given.

    Raises
    ------
    InvalidInputError
        If an option is given without ``--plot``, or is not valid.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if plot is None:
        for name, value in given.items():
            raise InvalidInputError(_option(name), "must be given together with --plot", value)
        return given
    from banditrank._figures import check_dpi, escape_mathtext, new_figure
    from banditrank.simulation._plots import CurveOptions, check_curve_options

    if "title" in given:
        given["title"] = escape_mathtext(given["title"])  # an error in a formula would appear at the end only
    if "size" in given:
        given["size"] = parse_size(given["size"])
    curve_options = {name: given[name] for name in CurveOptions.__annotations__ if name in given}
    try:
        check_curve_options(**cast("CurveOptions", curve_options))
        check_dpi(given.get("dpi"))
        with new_figure(given.get("size"), given.get("style"), default=(1, 1)):
            pass
    except InvalidInputError as error:
        raise InvalidInputError(_option(error.field), error.rule, options[error.field]) from None
    return given


def parse_size(text: str) -> "Size":
    """Return a width and a height in inches, or the text itself, which may be the name of a size.

    Examples
    --------
    >>> parse_size("5x3.5"), parse_size("column")
    ((5.0, 3.5), 'column')
    """
    width, _, height = text.partition("x")
    try:
        return float(width), float(height)
    except ValueError:
        return cast("Size", text)


def _option(name: str) -> str:
    return f"--plot-{name.replace('_', '-')}"
