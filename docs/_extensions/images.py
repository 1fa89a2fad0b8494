"""Alternative texts of figures and thumbnails, and links of screenshots to their full size.

A figure of a notebook has the text in the metadata of its cell, or else the title of its section.
"""

import ast
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

GALLERY = Path(__file__).parents[1] / "gallery"
SCREENSHOTS = "images/"
THUMBNAIL = re.compile(r"sphx_glr_(plot_\w+)_thumb\.png$")


def gallery_text(script: str) -> tuple[str, str]:
    """Return the title and the first paragraph of a script of the gallery."""
    source = (GALLERY / f"{script}.py").read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return title, " ".join(text.lstrip("=\n").split("\n\n")[0].replace("``", "").split())


def describe_images(app: Sphinx, document: nodes.document) -> None:
    """Add alternative texts, and a width that makes Sphinx link a screenshot."""
    is_notebook = str(app.env.doc2path(app.env.docname)).endswith(".ipynb")
    for image in document.findall(nodes.image):
        thumbnail = THUMBNAIL.search(image["uri"])
        if thumbnail:
            image["alt"] = f"Thumbnail: {gallery_text(thumbnail[1])[0]}"
        elif is_notebook and not image.get("alt"):
            image["alt"] = f"Figure: {_section_title(image)}"
        elif image["uri"].startswith(("../" + SCREENSHOTS, SCREENSHOTS)):
            image["width"] = "100%"


def _section_title(node: nodes.Node) -> str:
    while node.parent is not None and not isinstance(node, nodes.section):
        node = node.parent
    title = node.next_node(nodes.title)
    return title.astext() if title is not None else ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("doctree-read", describe_images, priority=400)  # before pictures are collected
    return {"parallel_read_safe": True, "parallel_write_safe": True}
