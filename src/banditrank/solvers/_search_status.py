"""Progress of a search in a notebook."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from banditrank._notebook import NotebookStatus, is_notebook
from banditrank.solvers._solver import Progress, always_continue


@contextmanager
def search_status(
    solver: str, on_progress: Callable[[Progress], bool]
) -> Iterator[Callable[[Progress], bool]]:
    """Yield the progress callback of a search: the caller's, or one that shows a line in a notebook.

    Parameters
    ----------
    solver
        Name of the solver.
    on_progress
        The caller's callback; `always_continue` if there is none.
    """
    if on_progress is not always_continue or not is_notebook():
        yield on_progress
        return
    with closing(NotebookStatus()) as status:

        def show(progress: Progress) -> bool:
            bounds = f"value {progress.value:.6g}, upper bound {progress.upper_bound:.6g}"
            status.update(f"{solver}: {progress.nodes:,} nodes, {bounds}")
            return True

        yield show
