"""Exports of a package that are imported on first use, so that importing the package takes no time."""

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from banditrank._extras import requires


def lazy_exports(
    package: str, exports: Mapping[str, tuple[str, ...]], *, extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package
        Name of the package.
    exports
        Exported names, by the module of the package that defines them.
    extra
        Extra of banditrank that installs what the modules import.
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with nullcontext() if extra is None else requires(extra, package):
            module = import_module(f"{package}.{modules[name]}")
        value = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_() -> list[str]:
        return sorted(modules)

    return getattr_, dir_
