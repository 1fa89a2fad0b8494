"""Options and progress of commands that read files with DuckDB."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

MemoryLimitOption = Annotated[
    str, typer.Option(help="Memory limit of DuckDB, at least 100MB; it spills to disk.")
]
TemporaryDirectoryOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Directory that DuckDB spills to.",
        show_default="the system's temporary directory",
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--workers", help="Number of threads, up to 1024.", show_default="one per processor"),
]
_STEPS = 1000


@contextmanager
def reading_progress(label: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; yield a function that takes the share of the work that is done."""
    from banditrank.simulation._progress import progress_bar

    with progress_bar(label, _STEPS, shown=None) as advance:
        finished_steps = 0

        def show(share: float) -> None:
            nonlocal finished_steps
            steps = int(share * _STEPS) - finished_steps
            advance(steps)
            finished_steps += steps

        yield show
