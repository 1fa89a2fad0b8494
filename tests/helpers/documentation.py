"""Pages of the documentation, without those that the build of the site generates."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "generated"
SITE_PAGES = sorted(page for page in DOCS.rglob("*.md") if GENERATED not in page.parents)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE_PAGES]


def page_id(page: Path) -> str:
    """Return the path of a page from the root of the project."""
    return page.relative_to(ROOT).as_posix()


def code_blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
