"""The documentation site is complete, its links lead somewhere, and it works from a folder."""

import ast
import os
import re
import subprocess
import sys
from codeop import compile_command
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from urllib.parse import unquote, urlsplit

import pytest
import typer
from helpers.browser import OpenPage
from helpers.documentation import DOCS, ROOT
from playwright.sync_api import expect
from sphinx.util.inventory import InventoryFile

import banditrank
from banditrank._cli.main import application

SITE = ROOT / "output" / "site"
OWN_SCHEMES = {"", "data"}
LOADING_TAGS = {"audio", "embed", "iframe", "img", "input", "script", "source", "track", "video"}
LOADING_RELATIONS = {"icon", "manifest", "modulepreload", "preload", "prefetch", "shortcut", "stylesheet"}
NOT_LINKED = {"search.html"}  # the target of a form
FILES = {"_downloads", "_sources", "_static"}  # of the pages


@dataclass
class _Page(HTMLParser):
    """Anchors, links and loaded files of one page."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADING_TAGS and "src" in given:
            self.loads.append(given["src"])
        if tag == "link" and LOADING_RELATIONS & set(given.get("rel", "").split()):
            self.loads.append(given["href"])
        self.loads += re.findall(r"url\(([^)]*)\)", given.get("style", ""))


@pytest.fixture(scope="module")
def pages() -> dict[Path, _Page]:
    """Build the site, unless nothing changed, and read its pages."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "build_site.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, "warnings"
    found = sorted(SITE.rglob("*.html"))
    return {path: _Page(path) for path in found if path.relative_to(SITE).parts[0] not in FILES}


def _target(page: Path, link: str) -> tuple[Path, str]:
    """Return the file and the anchor that an internal link leads to."""
    path, _, anchor = link.partition("#")
    return _file(page.parent, path.partition("?")[0]) if path else page, unquote(anchor)


@cache
def _file(directory: Path, path: str) -> Path:
    return Path(os.path.normpath(directory / unquote(path)))


def _public_names() -> set[str]:
    """Return all public names, also those of modules without `__all__`."""
    modules = {
        module.name
        for module in walk_packages(banditrank.__path__, "banditrank.")
        if not any(part.startswith("_") for part in module.name.split("."))
    }
    found = set()
    for name in {"banditrank", *modules}:
        module = import_module(name)
        defined = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == name]
        exported = getattr(module, "__all__", [key for key in defined if not key.startswith("_")])
        found |= {f"{name}.{one}" for one in exported if one != "__version__"} | {name}
    return found


def test_everything_public_is_in_the_reference(pages: dict[Path, _Page]) -> None:
    inventory = InventoryFile.loads((SITE / "objects.inv").read_bytes(), uri="")
    places = {
        name: item.uri
        for kind, items in inventory.data.items()
        if kind.startswith("py:")
        for name, item in items.items()
    }
    assert len(_public_names()) > 250
    assert not sorted(_public_names() - set(places))
    for name in _public_names():
        path, anchor = _target(SITE / "index.html", places[name].replace("$", name))
        assert anchor in pages[path].anchors, name


def _commands(command: object, path: str = "banditrank") -> dict[str, object]:
    """Return all commands that can be run, by their names."""
    found = {path: command} if not getattr(command, "commands", None) else {}
    for name, inner in getattr(command, "commands", {}).items():
        found |= _commands(inner, f"{path} {name}")
    return found


@pytest.mark.usefixtures("pages")
def test_every_command_and_option_is_in_the_reference() -> None:
    text = (SITE / "reference" / "command-line.html").read_text(encoding="utf-8")
    sections = {part.split('"', 1)[0]: part for part in text.split('<section id="')[1:]}
    commands = _commands(typer.main.get_command(application))
    assert len(commands) > 15
    for name, command in commands.items():
        section = re.sub(r"<[^>]*>", "", sections[name.replace(" ", "-")])
        for parameter in command.params:
            names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]
            assert not [one for one in names if one not in section], f"{name}: {names}"


def test_every_page_can_be_reached_from_the_index(pages: dict[Path, _Page]) -> None:
    reached: set[Path] = set()
    waiting = [SITE / "index.html"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        internal = [link for link in pages[page].links if not urlsplit(link).scheme]
        waiting += {_target(page, link)[0] for link in internal} & set(pages) - reached
    assert not {page.relative_to(SITE).as_posix() for page in set(pages) - reached} - NOT_LINKED
    sources = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {SITE / source for source in sources} <= reached, "every page of docs/ is on the site"


def test_internal_links_and_anchors_lead_somewhere(pages: dict[Path, _Page]) -> None:
    checked = 0
    for page in pages.values():
        for link in {link for link in page.links if not urlsplit(link).scheme}:
            path, anchor = _target(page.path, link)
            assert path.exists(), f"{page.path.name}: {link}"
            assert not anchor or path not in pages or anchor in pages[path].anchors, (
                f"{page.path.name}: {link}"
            )
            checked += 1
    assert checked > 1000


def test_external_links_are_well_formed(pages: dict[Path, _Page]) -> None:
    external = {link for page in pages.values() for link in page.links if urlsplit(link).scheme}
    for link in external:
        assert re.fullmatch(r"https?://[a-z0-9.-]+(:\d+)?(/[^\s<>\"]*)?", link), link


def test_nothing_is_loaded_from_another_host(pages: dict[Path, _Page]) -> None:
    for page in pages.values():
        for load in page.loads:
            parts = urlsplit(load)
            assert parts.scheme in OWN_SCHEMES, f"{page.path.name}: {load}"
            assert not parts.netloc, f"{page.path.name}: {load}"
            assert parts.scheme or _target(page.path, load)[0].exists(), f"{page.path.name}: {load}"
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        loads = re.findall(r"url\(\s*[\"']?([^\"')]*)|@import\s+[\"']([^\"']*)", text)
        assert not [load for pair in loads for load in pair if load.startswith(("http", "//"))], sheet.name


def test_every_script_of_the_gallery_makes_a_picture(pages: dict[Path, _Page]) -> None:
    scripts = sorted((DOCS / "gallery").glob("plot_*.py"))
    assert scripts
    for script in scripts:
        page = pages[SITE / "generated" / "gallery" / f"{script.stem}.html"]
        assert [load for load in page.loads if f"sphx_glr_{script.stem}_001" in load], script.name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("pages")
def test_pages_follow_the_colour_scheme(open_page: OpenPage, scheme: str) -> None:
    page = open_page((SITE / "index.html").as_uri(), width=390, scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(re.findall(r"\d+", background)[0])
    assert (red > 200) == (scheme == "light"), background


SCROLLS_SIDEWAYS = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
CUT_OFF = """() => [...document.querySelectorAll("article table, article pre, article img")].filter((one) => {
  for (let box = one; box.tagName !== "ARTICLE"; box = box.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
  }
  return one.getBoundingClientRect().right > document.documentElement.clientWidth;
}).map((one) => one.outerHTML.slice(0, 80))"""


def test_pages_fit_a_phone_and_what_is_wider_scrolls(pages: dict[Path, _Page], open_page: OpenPage) -> None:
    page = open_page((SITE / "index.html").as_uri(), width=390)
    sideways, cut_off = [], {}
    for path in pages:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        if page.evaluate(SCROLLS_SIDEWAYS):
            sideways.append(path.name)
        if found := page.evaluate(CUT_OFF):
            cut_off[path.name] = found
    assert not sideways
    assert not cut_off


def test_names_of_the_command_reference_are_code(pages: dict[Path, _Page]) -> None:
    path = SITE / "reference" / "command-line.html"
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"–(?=[a-z])", text), "dashes of options"
    article = re.sub(r"<[^>]*>", "", text.partition("<article")[2].partition("</article>")[0])
    assert "`" not in article
    assert "docs/reference" not in article
    assert "policies.html" in pages[path].links


def test_every_attribute_has_an_entry(pages: dict[Path, _Page]) -> None:
    for path in pages:
        if path.parent.name == "api":
            text = path.read_text(encoding="utf-8")
            assert not re.findall(r"<strong>\w+</strong> \([^)]*,\)", text), path.name
    text = (SITE / "generated" / "api" / "banditrank.simulation.html").read_text(encoding="utf-8")
    for name in ("horizon", "seed", "rewards", "click_model", "delay", "version"):
        assert f"<strong>{name}</strong>" in text


def test_every_picture_is_described(pages: dict[Path, _Page]) -> None:
    for path in pages:
        for tag in re.findall(r"<img [^>]*>", path.read_text(encoding="utf-8")):
            (alt,) = re.findall(r'alt="([^"]*)"', tag)
            is_button = 'src="_static/' in tag
            assert is_button or re.search(r"\w \w", alt), f"{path.name}: {tag}"


def test_every_notebook_can_be_downloaded(pages: dict[Path, _Page]) -> None:
    for notebook in (DOCS / "notebooks").glob("*.ipynb"):
        links = pages[SITE / "notebooks" / f"{notebook.stem}.html"].links
        (link,) = {link for link in links if link.endswith(f"/{notebook.name}")}
        downloaded, _ = _target(SITE / "notebooks" / "index.html", link)
        assert downloaded.read_bytes() == notebook.read_bytes()


@pytest.mark.usefixtures("pages")
def test_search_works_from_a_folder(open_page: OpenPage) -> None:
    page = open_page(f"{(SITE / 'search.html').as_uri()}?q=price+of+equality")
    expect(page.locator("#search-results li a", has_text="Quick start for analysts").first).to_be_visible()


# The copy button


def _copied(block: str, prompt: str) -> str:
    """Return what the button copies from a block: lines with a prompt, without it, and empty lines."""
    lines = block.split("\n")
    found = [re.match(rf"^({prompt})(.*)", line) for line in lines]
    if any(found):
        kept = [(match, line) for match, line in zip(found, lines, strict=True) if match or not line.strip()]
        block = "\n".join(match[2] if match else line for match, line in kept)
    return block.removesuffix("\n")


def _enter(text: str) -> None:
    """Compile a text line by line as an interpreter reads it, and raise the first error."""
    waiting: list[str] = []
    for line in text.split("\n"):
        waiting.append(line)
        if compile_command("\n".join(waiting)) is not None:
            waiting = []
    assert not "".join(waiting).strip(), f"the interpreter waits for more: {waiting}"


def test_what_the_button_copies_can_be_pasted_into_an_interpreter(pages: dict[Path, _Page]) -> None:
    script = (SITE / "_static" / "copybutton.js").read_text(encoding="utf-8")
    (quoted,) = re.findall(r"formatCopyText\(text, ('[^']*'), true, true, true, true, '', ''\)", script)
    prompt = ast.literal_eval(quoted)
    checked = compound = 0
    for path in pages:
        blocks = re.findall(
            r'<div class="highlight"><pre>(.*?)</pre>', path.read_text(encoding="utf-8"), re.DOTALL
        )
        for block in blocks:
            text = unescape(re.sub(r"<[^>]*>", "", block))
            if text.startswith(">>> "):
                _enter(_copied(text, prompt))
                checked, compound = checked + 1, compound + ("\n...\n" in text)
    assert (checked > 150, compound > 20) == (True, True)


def test_a_compound_statement_needs_an_empty_line() -> None:
    session = ">>> for n in range(2):\n...     n\n>>> n\n"
    with pytest.raises(SyntaxError):
        _enter(_copied(session, r">>> ?|\.\.\. ?"))
    _enter(_copied(session.replace(">>> n", "...\n>>> n"), r">>> ?|\.\.\. ?"))
