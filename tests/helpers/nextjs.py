"""The application of the guide to Next.js."""

import re
from pathlib import Path

from helpers.documentation import DOCS

PAGE = DOCS / "how-to" / "nextjs.md"


def guide_blocks() -> list[tuple[str, str]]:
    """Return the code blocks of the guide, each with the last file that is named before it."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.finditer(r"^```jsx\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(re.findall(r"`(app/[\w./]+)`", text[: block.start()])[-1], block[1]) for block in blocks]


def write_application(directory: Path, *, is_direct: bool = False) -> None:
    """Write the files of the guide, with time for a busy machine.

    Parameters
    ----------
    directory
        Directory of the application.
    is_direct
        Whether browsers send feedback without the route handler.
    """
    *files, (shown_in, direct_client) = guide_blocks()
    for name, source in files:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_direct and name == shown_in:
            (client,) = re.findall(r"^const client = .*?;\n", source, re.MULTILINE)
            path.write_text(source.replace(client, direct_client), encoding="utf-8")
        else:
            patient = source.replace("timeoutMs: 300,", "timeoutMs: 300_000,")
            path.write_text(patient, encoding="utf-8")
