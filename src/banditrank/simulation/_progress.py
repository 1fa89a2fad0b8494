"""Progress bars on standard error, or in a notebook."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeAlias

from banditrank._notebook import NotebookBar, is_notebook

Advance: TypeAlias = Callable[[int], None]
"""Progress callback; takes the number of steps just made."""


@contextmanager
def progress_bar(title: str, steps: int, *, shown: bool | None) -> Iterator[Advance]:
    """Show a progress bar on standard error or in a notebook, and yield the callback that advances it.

    Parameters
    ----------
    title
        Text before the bar.
    steps
        Total number of steps.
    shown
        Whether to show it; by default if standard error is a terminal, or in a notebook.
    """
    if is_notebook() and shown is not False:
        with closing(NotebookBar(title, steps)) as bar:
            yield bar.advance
        return
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only needed to show a bar
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=console.is_terminal) as progress:
        task = progress.add_task(title, total=steps)
        yield lambda made: progress.advance(task, made)
