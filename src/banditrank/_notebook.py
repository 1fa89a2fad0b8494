"""Outputs of notebook cells that are updated in place: progress bars and notices.

IPython's display protocol is enough for JupyterLab, VS Code and Colab; widgets would be another dependency.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from threading import Lock
from typing import Any
from uuid import uuid4

from banditrank._html import escape

DELAY_SECONDS = 0.5
"""Time after which a progress bar or status appears: what is finished sooner shows none."""

UPDATE_SECONDS = 0.2
_PROGRESS_STEPS = 1000
_MIN_ESTIMATED_SHARE = 0.02  # a smaller one does not predict the remaining time


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook; IPython in a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class CellOutput:
    """An output of the current cell that is replaced in place."""

    def __init__(self) -> None:
        self._display_id: str | None = None
        self._display: Any = import_module("IPython.display")

    def show(self, text: str, html: str) -> None:
        """Show a text and its HTML, or replace those shown before."""
        data = {"text/plain": text, "text/html": html}
        if self._display_id is None:
            self._display_id = uuid4().hex
            self._display.display(data, raw=True, display_id=self._display_id)
        else:
            self._display.update_display(data, raw=True, display_id=self._display_id)

    def clear(self) -> None:
        """Remove what is shown; the protocol can only replace it by something empty."""
        if self._display_id is not None:
            self.show("", "")


class NotebookBar:
    """A progress bar in the current cell. Thread-safe.

    Parameters
    ----------
    title
        Text before the bar.
    steps
        Total number of steps.
    """

    def __init__(self, title: str, steps: int) -> None:
        self._title = title
        self._steps = max(steps, 1)
        self._finished_steps = 0
        self._output = CellOutput()
        self._started_at = time.monotonic()
        self._next_update = self._started_at + DELAY_SECONDS
        self._lock = Lock()

    def advance(self, steps: int) -> None:
        """Add steps, and update the bar at most five times a second."""
        with self._lock:
            self._finished_steps += steps
            now = time.monotonic()
            if now >= self._next_update:
                self._next_update = now + UPDATE_SECONDS
                self._show(now - self._started_at)

    def close(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._output.clear()

    def _show(self, elapsed_seconds: float) -> None:
        share = min(self._finished_steps / self._steps, 1.0)
        text = f"{share:.0%}"
        if share >= _MIN_ESTIMATED_SHARE:
            text += f", {format_seconds(elapsed_seconds * (1 - share) / share)} left"
        bar = f'<progress value="{share:.3f}" max="1" style="width: 16em; vertical-align: middle"></progress>'
        self._output.show(f"{self._title}: {text}", f"<div>{escape(self._title)} {bar} {text}</div>")


@contextmanager
def notebook_progress(
    title: str, on_progress: Callable[[float], None] | None
) -> Iterator[Callable[[float], None] | None]:
    """Yield the caller's progress callback, or in a notebook one that shows a progress bar.

    Parameters
    ----------
    title
        Text before the bar.
    on_progress
        Callback that takes the share of the work that is done, from 0 to 1.
    """
    if on_progress is not None or not is_notebook():
        yield on_progress
        return
    with closing(NotebookBar(title, _PROGRESS_STEPS)) as bar:
        finished_steps = 0

        def advance(share: float) -> None:
            nonlocal finished_steps
            steps = int(share * _PROGRESS_STEPS) - finished_steps
            finished_steps += steps
            bar.advance(steps)

        yield advance


class NotebookStatus:
    """A line in the current cell about work whose end is not known."""

    def __init__(self) -> None:
        self._output = CellOutput()
        self._next_update = time.monotonic() + DELAY_SECONDS

    def update(self, text: str) -> None:
        """Show a text, at most five times a second."""
        if (now := time.monotonic()) >= self._next_update:
            self._next_update = now + UPDATE_SECONDS
            self._output.show(text, status_html(text))

    def close(self) -> None:
        """Remove the line."""
        self._output.clear()


class CompilationNotice:
    """A line in the current cell while formulas are compiled, removed at the end of the cell."""

    def __init__(self) -> None:
        self._output: CellOutput | None = None
        self._depth = 0
        self._started_at = 0.0
        self._seconds = 0.0

    def start(self) -> None:
        """Show the line; formulas that another one calls are compiled within it."""
        self._depth += 1
        if self._depth > 1:
            return
        self._started_at = time.monotonic()
        if self._output is None:
            self._output = CellOutput()
            self._seconds = 0.0
            shell = sys.modules["IPython"].get_ipython()
            shell.events.register("post_run_cell", self._end_cell)
        so_far = f", {format_seconds(self._seconds)} so far" if self._seconds else ""
        self._show(f"banditrank: compiling (first use, may take a minute){so_far}")

    def end(self) -> None:
        """Show how long it took."""
        self._depth -= 1
        if self._depth == 0:
            self._seconds += time.monotonic() - self._started_at
            self._show(f"banditrank: compiled in {format_seconds(self._seconds)}, and cached for later runs")

    def _show(self, text: str) -> None:
        if self._output is not None:
            self._output.show(text, status_html(text))

    def _end_cell(self, *_: object) -> None:
        if self._output is not None:
            self._output.clear()
            self._output = None
            sys.modules["IPython"].get_ipython().events.unregister("post_run_cell", self._end_cell)


def status_html(text: str) -> str:
    """Return the HTML of a line about running work."""
    return f'<div style="opacity: 0.7">{escape(text)}</div>'


def format_seconds(seconds: float) -> str:
    """Return a duration in seconds, or in minutes and seconds.

    Examples
    --------
    >>> format_seconds(12.3), format_seconds(95)
    ('12 s', '1 min 35 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
