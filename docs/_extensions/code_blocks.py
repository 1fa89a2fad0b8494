"""Code blocks as the copy button copies them.

Empty lines at the end, which doctests need after their output, are removed. Compound statements end with a
line ``...``: the button copies it as an empty line, which an interpreter needs before the next statement.
"""

from codeop import compile_command

from docutils import nodes
from sphinx.application import Sphinx

PROMPT, CONTINUATION = ">>>", "..."


def close_statements(text: str) -> str:
    """Return an interactive session whose compound statements end with a line ``...``."""
    lines: list[str] = []
    statement: list[str] = []
    for line in [*text.splitlines(), ""]:
        if not line.startswith(CONTINUATION):
            if statement and _needs_empty_line(statement):
                lines.append(CONTINUATION)
            statement = []
        if line.startswith(PROMPT) or (statement and line.startswith(CONTINUATION)):
            statement.append(line[len(PROMPT) + 1 :])
        lines.append(line)
    return "\n".join(lines[:-1])


def _needs_empty_line(statement: list[str]) -> bool:
    try:
        return compile_command("\n".join(statement)) is None
    except SyntaxError:  # of an example that shows an error
        return False


def clean_blocks(_app: Sphinx, document: nodes.document) -> None:
    """Remove empty lines from the ends of code blocks, and close their statements."""
    blocks = [*document.findall(nodes.literal_block), *document.findall(nodes.doctest_block)]
    for block in blocks:
        text = block.astext().rstrip()
        if text.startswith(PROMPT):
            text = close_statements(text)
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("doctree-read", clean_blocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
