"""Matplotlib figure that keeps its settings and shows itself in a notebook."""

from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from banditrank._figures import ignore_missing_glyphs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.backend_bases import RendererBase
    from matplotlib.typing import RcKeyType


class PlotFigure(Figure):
    """Figure that is drawn and saved with the settings that it was made with.

    pyplot does not know it, so a notebook shows it exactly once: where it is the value of a cell.

    Parameters
    ----------
    settings
        Settings of Matplotlib (rcParams).
    options
        Parameters of `matplotlib.figure.Figure`.
    """

    def __init__(self, *, settings: "Mapping[RcKeyType, Any]", **options: Any) -> None:
        self._settings = dict(settings)
        super().__init__(**options)

    def draw(self, renderer: "RendererBase") -> None:
        """Draw the figure."""
        with mpl.rc_context(self._settings), ignore_missing_glyphs():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure to a file, with embedded fonts.

        Parameters
        ----------
        fname
            File or stream.
        options
            Parameters of `matplotlib.figure.Figure.savefig`.
        """
        with mpl.rc_context(self._settings), ignore_missing_glyphs():
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()
