"""Notebooks are stored without outputs and with minimal metadata, and use public names only."""

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ALL = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def _is_alternative_text(metadata: dict[str, Any]) -> bool:
    """Return whether the metadata of a cell are the alternative text of its figure, and nothing else."""
    alt = metadata.get("mystnb", {}).get("image", {}).get("alt")
    return bool(alt) and metadata == {"mystnb": {"image": {"alt": alt}}}


def test_there_are_five_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == {
        *("from-log-to-surface", "own-policy", "own-problem", "price-of-equality", "reproduce-a-figure")
    }


@ALL
def test_outputs_and_metadata_are_not_stored(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert notebook["metadata"] == METADATA
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for number, cell in enumerate(notebook["cells"], start=1):
        assert cell["metadata"] == {} or _is_alternative_text(cell["metadata"])
        assert cell["id"] == f"{path.stem}-{number}"
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        else:
            assert set(cell) == {"cell_type", "id", "metadata", "source"}
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@ALL
def test_a_notebook_explains_its_cells(path: Path) -> None:
    kinds = [cell["cell_type"] for cell in cells(path)]
    assert kinds[0] == kinds[-1] == "markdown"
    assert "code code code" not in " ".join(kinds)
    headings = [line for cell in cells(path) for line in cell["source"] if re.match(r"# ", line)]
    titles = [line for line in cells(path)[0]["source"] if line.startswith("# ")]
    assert len(titles) == 1
    assert titles[0] in headings


@ALL
def test_only_public_names_are_used(path: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code")
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module.split(".")[0] == "banditrank"]
    assert own
    for node in own:
        exports = import_module(node.module).__all__
        assert {alias.name for alias in node.names} <= set(exports)
    attributes = {node.attr for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}
    assert not [name for name in attributes if name.startswith("_") and name != "__name__"]
