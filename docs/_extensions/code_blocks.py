"""Code blocks without the empty line at their end, which doctests need after their output."""

from docutils import nodes
from sphinx.application import Sphinx


def strip_blocks(_app: Sphinx, document: nodes.document) -> None:
    """Remove empty lines from the ends of code blocks."""
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("doctree-read", strip_blocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
