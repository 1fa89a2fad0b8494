"""Check the types of the examples in README.md and docs/ with mypy: ``python tools/check_example_types.py``.

Each page is a module with its examples at the lines of the page, so that errors name the page and the line.
Blocks without prompts are modules of their own on pages of programs.
"""

import doctest
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

# Examples in docs/ show what a report has without checking that it has it, policies without types and without
# the options that they do not support, and decorators of packages without types. The README has no
# exceptions.
_HEAD = '# mypy: allow-untyped-defs, disable-error-code="union-attr,misc,override,untyped-decorator"'

# Their examples pass lists of several types as arrays, and keyword arguments as a dictionary.
UNTYPED = {
    "docs/how-to/clusters.md",
    "docs/how-to/comparing.md",
    "docs/how-to/contextual-ranking.md",
    "docs/quickstart/analyst.md",
}

# Their blocks without prompts are whole programs.
PROGRAMS = {"docs/how-to/fastapi.md"}


def module_of(page: str, text: str) -> str:
    """Return the examples of a page as a module in which they are at the lines of the page."""
    lines = [""] * (text.count("\n") + 1)
    for example in doctest.DocTestParser().get_examples(text):
        source = example.source.splitlines()
        lines[example.lineno : example.lineno + len(source)] = source
    if page != "README.md":
        lines[0] = _HEAD  # the line of the heading
    return "\n".join(lines) + "\n"


def programs_of(text: str) -> list[str]:
    """Return the blocks of a page without prompts, as modules at their lines of the page."""
    blocks = re.finditer(r"^```python\n(?!>>>)(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [_HEAD + "\n" * text.count("\n", 0, block.start(1)) + block[1] for block in blocks]


def check_types(pages: dict[str, str]) -> str:
    """Return the errors of mypy in the examples of pages, given their text by path."""
    with TemporaryDirectory() as directory:
        modules: dict[str, str] = {}
        for page, text in pages.items():
            name = re.sub(r"[^a-z0-9]", "_", page.lower())
            programs = programs_of(text) if page in PROGRAMS else []
            for number, source in enumerate([module_of(page, text), *programs]):
                modules[f"{name}_{number}.py"] = page
                Path(directory, f"{name}_{number}.py").write_text(source, encoding="utf-8")
        options = [
            "--no-error-summary",
            "--config-file",
            str(ROOT / "pyproject.toml"),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, *(str(Path(directory, module)) for module in modules)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    errors = done.stdout + done.stderr
    for module, page in modules.items():
        errors = re.sub(rf"\S*\b{re.escape(module)}", page, errors)
    return errors


def main() -> int:
    """Print the errors in the examples of all pages, and return the exit status."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    typed = {
        page: text
        for page, text in pages.items()
        if page not in UNTYPED
        and not page.startswith("docs/generated/")
        and (page in PROGRAMS or ">>>" in text)
    }
    errors = check_types(typed)
    print(errors or f"the examples of {len(typed)} pages have correct types")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
