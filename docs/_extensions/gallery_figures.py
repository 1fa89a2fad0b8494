"""Pictures of the gallery: all figures of a script, also those that pyplot does not manage."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

DOTS_PER_INCH = 150


def save_figures(_block: tuple[Any, ...], block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures of a script that are not saved yet, and return text that shows them."""
    variables = block_vars["example_globals"]
    saved = block_vars.setdefault("saved_figures", [])
    paths: list[str] = []
    for value in list(variables.values()):
        figure = value.figure if isinstance(value, Axes) else value
        if isinstance(figure, Figure) and not any(figure is one for one in saved):
            saved.append(figure)
            paths.append(next(block_vars["image_path_iterator"]))
            figure.savefig(paths[-1], dpi=DOTS_PER_INCH)
    return figure_rst(paths, gallery_conf["src_dir"])
