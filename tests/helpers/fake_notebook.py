"""A stand-in for the kernel of a notebook, which records the outputs of cells."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

COMPILING = "banditrank: compiling (first use, may take a minute)"


class FakeNotebook:
    """Records what is displayed, by display id: the texts in the order in which they were shown.

    Parameters
    ----------
    monkeypatch
        Restores IPython's modules at the end of the test.
    has_kernel
        Whether a front end is connected; IPython in a terminal has no kernel.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_kernel: bool = True) -> None:
        self.texts: dict[str, list[str]] = {}
        self.html: list[str] = []
        self.callbacks: list[Callable[..., None]] = []
        events = SimpleNamespace(register=self._register, unregister=self._unregister)
        shell = SimpleNamespace(kernel=object() if has_kernel else None, events=events)
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        vars(ipython).update(get_ipython=lambda: shell, display=display)
        vars(display).update(display=self._display, update_display=self._update)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    @property
    def notices(self) -> list[list[str]]:
        """The texts of each notice of compilation, the first notice first."""
        return [texts for texts in self.texts.values() if texts[0].startswith(COMPILING)]

    @property
    def outputs(self) -> list[list[str]]:
        """The texts of each other output, the first output first."""
        return [texts for texts in self.texts.values() if not texts[0].startswith(COMPILING)]

    def end_cell(self) -> None:
        """Call the callbacks of the end of a cell."""
        for callback in self.callbacks[:]:
            callback(None)

    def _display(self, data: dict[str, Any], *, raw: bool, display_id: str) -> None:
        assert raw
        assert display_id not in self.texts
        self.texts[display_id] = [data["text/plain"]]
        self.html.append(data["text/html"])

    def _update(self, data: dict[str, Any], *, raw: bool, display_id: str) -> None:
        assert raw
        self.texts[display_id].append(data["text/plain"])
        self.html.append(data["text/html"])

    def _register(self, name: str, callback: Callable[..., None]) -> None:
        assert name == "post_run_cell"
        self.callbacks.append(callback)

    def _unregister(self, name: str, callback: Callable[..., None]) -> None:
        assert name == "post_run_cell"
        self.callbacks.remove(callback)
