"""Static files of the dashboard are short, complete and used."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

STATIC = Path(str(files("banditrank.service"))) / "static"
SWAGGER_UI = STATIC.with_name("swagger_ui")
SCRIPTS = sorted(STATIC.glob("*.js"))
ENTRIES = {"surface.js", "home.js", "docs.js", "theme.js"}  # loaded by HTML files

_IMPORT = re.compile(r'^(?:import|export) (?:\{([^}]*)\}|\*) from "\./([\w.-]+)";', re.MULTILINE)

_EXPORT = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.MULTILINE)


def imports(script: Path) -> dict[str, set[str]]:
    """Return the names that a script imports, by file."""
    found: dict[str, set[str]] = {}
    for names, file in _IMPORT.findall(script.read_text(encoding="utf-8")):
        found[file] = {name.strip() for name in names.split(",") if name.strip()}
    return found


def exports(script: Path) -> set[str]:
    return set(_EXPORT.findall(script.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda file: file.name)
def test_files_and_lines_are_short(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 110 and not line.startswith("<svg")] == []
    assert len(lines) <= 300


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_scripts_have_a_description_and_use_their_imports(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    assert source.startswith("// ")
    for file, names in imports(script).items():
        assert (STATIC / file).exists()
        for name in names:
            assert name in exports(STATIC / file) or file == "sentences.js", (file, name)
            if "export { " not in source:
                assert len(re.findall(rf"\b{name}\b", source)) > 1, name
    assert not re.search(r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|\beval\(|\.style\b", source)


def test_every_script_and_every_export_is_used() -> None:
    imported: dict[str, set[str]] = {}
    for script in SCRIPTS:
        for file, names in imports(script).items():
            imported.setdefault(file, set()).update(names)
    assert {script.name for script in SCRIPTS} == set(imported) | ENTRIES
    for script in SCRIPTS:
        if not script.name.startswith("sentences-"):  # sentences.js exports all of their names
            unused = exports(script) - imported.get(script.name, set())
            assert unused <= ONLY_TESTED, script.name


ONLY_TESTED = {"eventParser", "rateInterval"}  # exports that only tests use


@pytest.mark.parametrize("sheet", sorted(STATIC.glob("*.css")), ids=lambda file: file.name)
def test_classes_of_style_sheets_exist(sheet: Path) -> None:
    files = (*SCRIPTS, *STATIC.glob("*.html"), *SWAGGER_UI.glob("*.css"), *SWAGGER_UI.glob("*.js"))
    sources = "".join(file.read_text(encoding="utf-8") for file in files)
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", rules):
        for name in re.findall(r"\.([a-z][\w-]*)", selector):
            counted = name.rstrip("0123456789") + "${"  # such as p${step}
            assert re.search(rf"(?<![\w-])({name}(?![\w-])|{re.escape(counted)})", sources), selector


def test_every_style_sheet_is_loaded() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in STATIC.glob("*.html"))
    assert [sheet.name for sheet in STATIC.glob("*.css") if f"assets/{sheet.name}" not in pages] == []


def test_pages_load_files_that_exist() -> None:
    for page in STATIC.glob("*.html"):
        for file in re.findall(r'(?:href|src)="(?:\.\./)?assets/([^"]+)"', page.read_text(encoding="utf-8")):
            assert (STATIC / file).exists() or (SWAGGER_UI / file).exists(), file
