"""The citation file and the BibTeX entries agree with the package and with each other."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from banditrank import __version__

ROOT = Path(__file__).parents[1]
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PAGES = ("README.md", "docs/reference/citing.md")


def bibtex_entries(page: str) -> dict[str, dict[str, str]]:
    """Return the fields of the BibTeX entries of a page, by kind, without the braces."""
    blocks = "\n".join(re.findall(r"```bibtex\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
    return {
        kind: {
            name: re.sub(r"[{}]", "", value)
            for name, value in re.findall(r"^  (\w+) *= \{(.*)\},?$", body, re.MULTILINE)
        }
        for kind, body in re.findall(r"^@(\w+)\{(.*?)^\}", blocks, re.DOTALL | re.MULTILINE)
    }


def test_the_citation_file_conforms_to_its_schema() -> None:
    check = ["-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format"]
    done = subprocess.run(
        [sys.executable, *check, str(ROOT / "CITATION.cff")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_citation_file_is_of_this_version() -> None:
    assert str(CITATION["version"]) == __version__
    heading = re.search(
        rf"^## \[{re.escape(__version__)}\] - (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert str(CITATION["date-released"]) == heading[1]
    assert CITATION["authors"][0]["name"] in (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_bibtex_agrees_with_the_citation_file(page: str) -> None:
    entries = bibtex_entries(page)
    assert entries["software"] == {
        "author": CITATION["authors"][0]["name"],
        "title": CITATION["title"],
        "year": str(CITATION["date-released"].year),
        "version": __version__,
        "license": CITATION["license"],
    }
    (paper,) = CITATION["references"]
    authors = [f"{one['family-names']}, {one['given-names']}" for one in paper["authors"]]
    assert entries["misc"] == {
        "author": " and ".join(authors),
        "title": paper["title"],
        "year": str(paper["year"]),
        "eprint": paper["identifiers"][0]["value"].removeprefix("arXiv:"),
        "archiveprefix": "arXiv",
        "url": paper["url"],
    }
