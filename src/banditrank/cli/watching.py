"""How a long search is watched, and ended with the best that it has."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from banditrank.cli.output import shown

if TYPE_CHECKING:
    from banditrank.solvers.solver import Progress

_PAUSE = 0.25  # seconds between two changes of what is shown


class Watch:
    """What a search calls to tell how far it has come, and to ask whether to go on."""

    def __init__(self, status: Any) -> None:
        self.stopped = False
        self._status = status
        self._next = 0.0

    def __call__(self, progress: "Progress") -> bool:
        """Show how far it has come; return False after Ctrl-C."""
        if self._status is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            figures = f"value {shown(progress.value)}, at most {shown(progress.upper_bound)}"
            self._status.update(f"{progress.nodes:,} nodes, {figures}; Ctrl-C takes the best so far")
        return not self.stopped

    def stop(self, _signal: int, _frame: FrameType | None) -> None:
        """End the search at the next call; the second Ctrl-C ends the program."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True


@contextmanager
def watched() -> Iterator[Watch]:
    """Show a search on standard error, if that is a terminal, and let Ctrl-C end it with what it has."""
    with _status() as status:
        watch = Watch(status)
        before = signal.signal(signal.SIGINT, watch.stop)
        try:
            yield watch
        finally:
            signal.signal(signal.SIGINT, before)


def exit_if_stopped(watch: Watch) -> None:
    """End the command as interrupted if it was."""
    if watch.stopped:
        typer.echo("banditrank: interrupted: what is not certified is the best so far", err=True)
        raise typer.Exit(130)


@contextmanager
def _status() -> Iterator[Any]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, emoji=False).status("searching") as status:
        yield status
