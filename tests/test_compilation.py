"""The machine code that is kept does not depend on files without formulas."""

import ast
from pathlib import Path

import pytest

import banditrank
from banditrank.compilation import WITHOUT_FORMULAS

PACKAGE = Path(banditrank.__file__).parent
HARMLESS = {"told_of_compiling"}  # make no formula: they call one


@pytest.mark.parametrize("layer", WITHOUT_FORMULAS)
def test_layers_without_formulas_compile_nothing(layer: str) -> None:
    files = sorted((PACKAGE / layer).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = {alias.name.partition(".")[0]: alias.name for alias in node.names}
                assert "numba" not in modules, file
                assert "banditrank.compilation" not in modules.values(), file
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.module.partition(".")[0] != "numba", file
                if node.module == "banditrank.compilation":
                    assert {alias.name for alias in node.names} <= HARMLESS, file
                elif node.module == "banditrank":
                    assert "compilation" not in {alias.name for alias in node.names}, file
