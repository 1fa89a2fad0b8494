"""Line breaks after the dots of package names in the sidebar, which is narrower than some names."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

DOTTED_NAME = re.compile(r"(?<=>)banditrank(?:\.\w+)+(?=<)")


def break_names(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None
) -> None:
    """Add the breaks to the navigation of a page."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = DOTTED_NAME.sub(
            lambda found: found[0].replace(".", ".<wbr>"), str(tree)
        )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("html-page-context", break_names, priority=900)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
