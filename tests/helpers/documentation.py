"""Pages of the documentation, without those that the build of the site generates."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = DOCS / "generated"
SITE_PAGES = sorted(page for page in DOCS.rglob("*.md") if GENERATED not in page.parents)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE_PAGES]


def page_id(page: Path) -> str:
    """Return the path of a page from the root of the project."""
    return page.relative_to(ROOT).as_posix()
