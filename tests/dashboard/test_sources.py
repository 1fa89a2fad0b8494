"""The dashboard's files are kept as the rest of the package is: short, whole, and with nothing left over."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

PAGES = Path(str(files("banditrank.service"))) / "static"
SCRIPTS = sorted(PAGES.glob("*.js"))
ENTRIES = {"surface.js", "home.js", "theme.js"}  # what HTML files name

_IMPORT = re.compile(r'^(?:import|export) (?:\{([^}]*)\}|\*) from "\./([\w.-]+)";', re.MULTILINE)

_EXPORT = re.compile(r"^export (?:async )?(?:const|function|class) (\w+)", re.MULTILINE)


def imports(script: Path) -> dict[str, set[str]]:
    """Return what a script takes from which other."""
    found: dict[str, set[str]] = {}
    for names, file in _IMPORT.findall(script.read_text(encoding="utf-8")):
        found[file] = {name.strip() for name in names.split(",") if name.strip()}
    return found


def exports(script: Path) -> set[str]:
    return set(_EXPORT.findall(script.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", sorted(PAGES.iterdir()), ids=lambda file: file.name)
def test_files_are_short_and_their_lines_too(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 110 and not line.startswith("<svg")] == []
    assert len(lines) <= 300


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_scripts_say_what_they_are_for_and_use_what_they_import(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    assert source.startswith("// ")
    for file, names in imports(script).items():
        assert (PAGES / file).exists()
        for name in names:
            assert name in exports(PAGES / file) or file == "sentences.js", (file, name)
            if "export { " not in source:
                assert len(re.findall(rf"\b{name}\b", source)) > 1, name
    assert not re.search(r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|\beval\(|\.style\b", source)


def test_every_script_and_every_name_is_needed() -> None:
    taken: dict[str, set[str]] = {}
    for script in SCRIPTS:
        for file, names in imports(script).items():
            taken.setdefault(file, set()).update(names)
    assert {script.name for script in SCRIPTS} == set(taken) | ENTRIES
    for script in SCRIPTS:
        if not script.name.startswith("sentences-"):  # which sentences.js hands on as a whole
            unused = exports(script) - taken.get(script.name, set())
            assert unused <= TESTED, script.name


TESTED = {"eventParser", "rateInterval"}  # names that only tests take from elsewhere


@pytest.mark.parametrize("sheet", sorted(PAGES.glob("*.css")), ids=lambda file: file.name)
def test_style_sheets_name_classes_that_exist(sheet: Path) -> None:
    made = "".join(file.read_text(encoding="utf-8") for file in (*SCRIPTS, *PAGES.glob("*.html")))
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", rules):
        for name in re.findall(r"\.([a-z][\w-]*)", selector):
            counted = name.rstrip("0123456789") + "${"  # such as p${step}
            assert re.search(rf"(?<![\w-])({name}(?![\w-])|{re.escape(counted)})", made), selector


def test_every_style_sheet_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.html"))
    assert [sheet.name for sheet in PAGES.glob("*.css") if f"assets/{sheet.name}" not in pages] == []


def test_pages_name_files_that_exist() -> None:
    for page in PAGES.glob("*.html"):
        for file in re.findall(r'(?:href|src)="(?:\.\./)?assets/([^"]+)"', page.read_text(encoding="utf-8")):
            assert (PAGES / file).exists(), file
