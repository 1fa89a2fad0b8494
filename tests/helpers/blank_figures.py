"""Reports without figures, for tests of everything else."""

import pytest

from banditrank._report_page.elements import ReportFigure
from banditrank._report_page.rendering import RenderedFigure
from banditrank.experiments import _report as report

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'


def render_blank_figures(patch: pytest.MonkeyPatch) -> None:
    """Replace the figures of reports by blank ones, which take no time."""
    patch.setattr(report, "render_figure", _render_blank)


def _render_blank(figure: ReportFigure) -> RenderedFigure:
    return RenderedFigure(figure, b"", SVG, SVG)
