"""Image scraper for sphinx-gallery: saves the figures that a script assigns to names.

Matplotlib's own scraper finds only figures that pyplot knows; those of banditrank are not among them.
"""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def figure_scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:  # noqa: ARG001
    """Save the new figures of a block, and return the directives that show them."""
    saved = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and not getattr(value, "_is_in_gallery", False):
            path = str(next(block_vars["image_path_iterator"]))
            value.savefig(path, format="png", dpi=150)
            value._is_in_gallery = True  # noqa: SLF001 - marks it as saved
            saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])
