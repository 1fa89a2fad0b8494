"""Progress of a long search, which Ctrl-C ends with the best ranking so far."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from banditrank._cli.output import format_number

if TYPE_CHECKING:
    from banditrank.solvers._solver import Progress

_UPDATE_SECONDS = 0.25


class SearchProgress:
    """Progress callback of a search, which stops it after Ctrl-C."""

    def __init__(self, status: Any) -> None:
        self.is_interrupted = False
        self._status = status
        self._next_update = 0.0

    def __call__(self, progress: "Progress") -> bool:
        """Show the progress; return False after Ctrl-C."""
        if self._status is not None and time.monotonic() >= self._next_update:
            self._next_update = time.monotonic() + _UPDATE_SECONDS
            bounds = f"value {format_number(progress.value)}, bound {format_number(progress.upper_bound)}"
            self._status.update(f"{progress.nodes:,} nodes, {bounds}; Ctrl-C keeps the best so far")
        return not self.is_interrupted

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Stop the search at the next call; a second Ctrl-C raises KeyboardInterrupt."""
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True


@contextmanager
def show_search_progress() -> Iterator[SearchProgress]:
    """Show a search on standard error, if it is a terminal, and handle Ctrl-C during the block."""
    with _status() as status:
        search = SearchProgress(status)
        before = signal.signal(signal.SIGINT, search.interrupt)
        try:
            yield search
        finally:
            signal.signal(signal.SIGINT, before)


def exit_if_interrupted(search: SearchProgress) -> None:
    """Exit with status 130 if the search was interrupted.

    Raises
    ------
    typer.Exit
        If the search was interrupted.
    """
    if search.is_interrupted:
        typer.echo("banditrank: interrupted: uncertified rankings are the best found so far", err=True)
        raise typer.Exit(130)


@contextmanager
def _status() -> Iterator[Any]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True, markup=False, emoji=False).status("searching") as status:
        yield status
