"""Pages of the API reference: one for each public package, with every name that it exports.

A name that `banditrank` exports is documented as ``banditrank.NAME``, on the page of the package that it
comes from. Its other public names, and the private one that annotations use, lead there too.
"""

import inspect
import pkgutil
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer

import banditrank

PAGES = Path(__file__).parents[1] / "generated" / "api"


class Package(NamedTuple):
    """A public package or module, and the names that it exports."""

    name: str
    module: ModuleType
    exports: tuple[str, ...]


@cache
def public_packages() -> list[Package]:
    """Return all public packages and modules, `banditrank` first."""
    names = [
        module.name
        for module in pkgutil.walk_packages(banditrank.__path__, "banditrank.")
        if not any(part.startswith("_") for part in module.name.split("."))
    ]
    modules = [(name, import_module(name)) for name in ["banditrank", *sorted(names)]]
    return [Package(name, module, tuple(_exports(module))) for name, module in modules]


def _exports(module: ModuleType) -> list[str]:
    """Return the names that a module exports: `__all__`, or the public names that it defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if name != "__version__"]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


@cache
def homes() -> dict[str, str]:
    """Return the package on whose page each exported name is documented: the innermost one."""
    ordered = sorted(public_packages(), key=lambda package: package.name.count("."))
    return {name: package.name for package in ordered for name in package.exports}


def documented_name(name: str, home: str) -> str:
    """Return the full name that users import."""
    return f"banditrank.{name}" if name in banditrank.__all__ else f"{home}.{name}"


def _directive(full_name: str, value: Any) -> str:
    """Return the lines that document a class, an exception, a function or a constant."""
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
        public_bases = [base.__name__ for base in value.__mro__[1:] if not _is_private(base)]
        lines = [f".. auto{kind}:: {full_name}", "   :members:"]
        if any(map(_is_shown, value.__bases__)):
            lines.append("   :show-inheritance:")
        if any(_is_private(base) for base in value.__mro__[1:]):
            lines.append(f"   :inherited-members: {', '.join(public_bases)}")
        return "\n".join(lines)
    if inspect.isroutine(value):
        return f".. autofunction:: {full_name}"
    package, _, name = full_name.rpartition(".")
    return f".. py:data:: {name}\n   :module: {package}\n\n   {_constant_docstring(full_name)}"


def _summary(full_name: str, value: Any) -> str:
    """Return the first line of a docstring."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return _constant_docstring(full_name)


def _constant_docstring(full_name: str) -> str:
    """Return the string below the assignment of a constant."""
    name = full_name.rpartition(".")[2]
    for module, value in list(sys.modules.items()):
        if module.startswith("banditrank.") and name in vars(value) and not hasattr(value, "__all__"):
            docstring = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if docstring:
                return " ".join(docstring).strip()
    raise ExtensionError(f"{full_name} has no docstring")


def _is_private(kind: type) -> bool:
    """Return whether a base class is documented nowhere, so that its members belong to the derived class."""
    return kind.__module__.startswith("banditrank.") and kind.__name__ not in homes()


def _is_shown(base: object) -> bool:
    """Return whether a base class, which may be generic, is public or an exception of Python's."""
    is_builtin_error = inspect.isclass(base) and issubclass(base, Exception) and base.__module__ == "builtins"
    return getattr(base, "__name__", None) in homes() or is_builtin_error


def hide_bases(_app: Sphinx, _name: str, _value: object, _options: object, bases: list[object]) -> None:
    """Remove private base classes from the description of a class."""
    bases[:] = filter(_is_shown, bases)


def shorten_arrays(
    _app: Sphinx, _kind: str, _name: str, _value: object, _options: object, signature: str, returned: str
) -> tuple[str | None, str | None]:
    """Write ``NDArray[float64]`` for an array, as the source does."""
    long = re.compile(r"~?numpy\.ndarray\[tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[(.*?)\]\]")
    short = r"~numpy.typing.NDArray[\1]"
    return signature and long.sub(short, signature), returned and long.sub(short, returned)


def split_attributes(
    _app: Sphinx, _kind: str, _name: str, _value: object, _options: object, lines: list[str]
) -> None:
    """Split the description of several attributes: Sphinx takes all names but one for a type."""
    found = re.compile(r"^:ivar (?P<names>\w+(?:, \w+)+):(?P<rest>.*)$")
    split: list[str] = []
    while lines:
        shared = found.match(lines[0])
        end = next((n for n, line in enumerate(lines) if n and not line.startswith(" ")), len(lines))
        entry = lines[:end]
        del lines[:end]
        if shared is None:
            split += entry
            continue
        for name in shared["names"].split(", "):
            split += [f":ivar {name}:{shared['rest']}", *entry[1:]]
    lines[:] = split


def write_pages(_app: Sphinx) -> None:
    """Write a page for each public package, and replace only what changed."""
    packages = public_packages()
    home_of = homes()
    PAGES.mkdir(parents=True, exist_ok=True)
    for package in packages:
        lines = [
            package.name,
            "=" * len(package.name),
            "",
            f".. automodule:: {package.name}",
            "   :no-members:",
            "",
        ]
        if package.exports:
            lines += [".. list-table::", "   :class: public-names", ""]
        for name in package.exports:
            full_name = documented_name(name, home_of[name])
            lines += [
                f"   * - :py:obj:`~{full_name}`",
                f"     - {_summary(full_name, getattr(package.module, name))}",
            ]
        for name in package.exports:
            if home_of[name] == package.name:
                lines += ["", _directive(documented_name(name, package.name), getattr(package.module, name))]
        path, text = PAGES / f"{package.name}.rst", "\n".join([*lines, ""])
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in PAGES.glob("*.rst"):
        if path.stem not in {package.name for package in packages}:
            path.unlink()


def add_aliases(_app: Sphinx, env: BuildEnvironment) -> None:
    """Let all names of a documented object lead to it."""
    packages = public_packages()
    home_of = homes()
    objects = env.get_domain("py").data["objects"]
    for package in packages:
        for name in package.exports:
            value = getattr(package.module, name)
            full_name = documented_name(name, home_of[name])
            private_name = f"{getattr(value, '__module__', package.name)}.{name}"
            members = {
                known.removeprefix(full_name): entry
                for known, entry in objects.items()
                if known == full_name or known.startswith(f"{full_name}.")
            }
            for alias in {f"{package.name}.{name}", private_name} - {full_name}:
                for member, entry in members.items():
                    objects.setdefault(alias + member, entry._replace(aliased=True))


def resolve_short_names(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Resolve names without their package, such as `Problem` in docstrings; other code stays code."""
    if node.get("refdomain") != "py":
        return None
    domain = env.get_domain("py")
    assert isinstance(domain, PythonDomain)  # noqa: S101 - narrows the type
    home_of = homes()
    parts = node["reftarget"].split(".")
    for index, part in enumerate(parts):
        if part in home_of:
            name = ".".join([documented_name(part, home_of[part]), *parts[index + 1 :]])
            if name in domain.objects:
                return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    is_own = parts[0] == "banditrank" or len(parts) == 1
    return content if node["reftype"] == "obj" or is_own else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the events."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-bases", hide_bases)
    app.connect("autodoc-process-signature", shorten_arrays)
    app.connect("autodoc-process-docstring", split_attributes, priority=600)  # after napoleon
    app.connect("env-updated", add_aliases)
    app.connect("missing-reference", resolve_short_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
