"""Image scraper for sphinx-gallery: saves the figures that a script assigns to names.

Matplotlib's own scraper finds only figures that pyplot knows; those of banditrank are not among them.
"""

from pathlib import Path
from typing import Any

from images import gallery_text
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
    title, text = gallery_text(Path(block_vars["src_file"]).stem)
    return figure_rst(saved, gallery_conf["src_dir"], f"{title}. {text}")
