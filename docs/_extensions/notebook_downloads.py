"""A link below the title of each notebook that downloads it."""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def add_download(app: Sphinx, document: nodes.document) -> None:
    """Add the link to the page of a notebook."""
    path = Path(app.env.doc2path(app.env.docname, base=False))
    title = document.next_node(nodes.title)
    if path.suffix != ".ipynb" or title is None:
        return
    link = addnodes.download_reference(
        "",
        "",
        nodes.Text("Download this notebook"),
        refdoc=app.env.docname,
        reftarget=path.name,
        filename=str(app.env.dlfiles.add_file(app.env.docname, path.as_posix())),
    )
    title.parent.insert(1, nodes.paragraph("", "", link))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("doctree-read", add_download)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
