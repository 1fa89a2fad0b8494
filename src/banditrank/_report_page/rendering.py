"""Images of figures in all formats and colour themes, and the templates' environment."""

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from banditrank._extras import requires
from banditrank._figures import ignore_missing_glyphs, theme
from banditrank._report_page.elements import ReportFigure, column_kinds

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class RenderedFigure:
    """Image files of a figure: PNG, and SVG for a light and for a dark page."""

    source: ReportFigure
    png: bytes
    light_svg: bytes
    dark_svg: bytes


def render_figure(figure: ReportFigure) -> RenderedFigure:
    """Render a figure in all formats and colour themes."""
    return RenderedFigure(
        figure,
        _render(figure, "png", dark=False),
        _render(figure, "svg", dark=False),
        _render(figure, "svg", dark=True),
    )


def _render(figure: ReportFigure, image_format: str, *, dark: bool) -> bytes:
    with requires("reports", "the report"):
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    target = BytesIO()
    with theme(dark=dark), ignore_missing_glyphs():
        canvas = Figure(figsize=(figure.width, figure.height), dpi=150, layout="constrained")
        figure.draw(canvas)
        metadata = {"Date": None} if image_format == "svg" else None
        canvas.savefig(target, format=image_format, metadata=metadata)
    return target.getvalue()


def data_uri(svg: bytes) -> str:
    """Return a data URI that contains an SVG image.

    Examples
    --------
    >>> data_uri(b"<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{b64encode(svg).decode('ascii')}"


def make_environment(package: str) -> "Environment":
    """Return the environment of a package's templates, which extend and include those of this package.

    Parameters
    ----------
    package
        Name of the package, with a directory ``templates``.

    Raises
    ------
    MissingDependencyError
        If Jinja is not installed.
    """
    with requires("reports", "the report"):
        from jinja2 import (  # noqa: PLC0415 - heavy, and optional
            ChoiceLoader,
            Environment,
            PackageLoader,
            StrictUndefined,
        )

    packages = (package, "banditrank._report_page")
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"data_uri": data_uri, "column_kinds": column_kinds}
    return environment
