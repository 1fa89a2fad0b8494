"""Benchmarks, campaigns and tools, which the tests do not run, import names that exist."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path.relative_to(ROOT)
    for directory in ("benchmarks", "tests/campaigns", "tools")
    for path in sorted((ROOT / directory).glob("*.py"))
]


def parse(script: Path) -> ast.Module:
    return ast.parse((ROOT / script).read_text(encoding="utf-8"), str(script))


def package_imports(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Yield the modules of the package that a script imports, with the name that it imports from each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imports = [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            imports = [(alias.name, None) for alias in node.names]
        else:
            continue
        yield from (one for one in imports if one[0].split(".")[0] == "banditrank")


def is_importable(module: str, name: str | None) -> bool:
    try:
        found = import_module(module)
        if name is not None and not hasattr(found, name):
            import_module(f"{module}.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("banditrank"):
            raise
        return False
    return True


def test_directories_contain_scripts() -> None:
    assert {path.parent.as_posix() for path in SCRIPTS} == {"benchmarks", "tests/campaigns", "tools"}
    assert any(list(package_imports(parse(script))) for script in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_scripts_compile_and_import_names_that_exist(script: Path) -> None:
    tree = parse(script)
    compile(tree, str(script), "exec")
    assert [one for one in package_imports(tree) if not is_importable(*one)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "from banditrank._cli.output import finite",
        "from banditrank import _renamed",
        "import banditrank._renamed",
        "def run():\n    from banditrank._renamed import name",
    ],
)
def test_missing_names_are_found(statement: str) -> None:
    assert [is_importable(*one) for one in package_imports(ast.parse(statement))] == [False]


def test_existing_names_are_found() -> None:
    statement = "from banditrank import solve, service\nimport banditrank.service\nimport granian"
    assert [is_importable(*one) for one in package_imports(ast.parse(statement))] == [True, True, True]
