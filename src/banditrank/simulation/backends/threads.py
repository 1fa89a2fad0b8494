"""Replications of compiled policies in threads of this process."""

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from joblib import Parallel, delayed

from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication
from banditrank.simulation.run import replicate


class _Stopped(Exception):  # noqa: N818 - not an error: somebody pressed Ctrl-C
    """A replication was told to stop before its end."""


def in_threads(
    experiment: Experiment, numbers: Sequence[int], workers: int, advance: Advance
) -> Generator[Replication]:
    """Yield replications as they finish, some at once; with one worker they run in the caller's thread."""
    stop, running = threading.Event(), _Running()

    def advance_or_stop(rounds: int) -> None:
        if stop.is_set():
            raise _Stopped
        advance(rounds)

    def play(number: int) -> Replication:
        with running.one_more():
            if stop.is_set():
                raise _Stopped
            return replicate(experiment, number, advance_or_stop)

    threads = max(1, min(workers, len(numbers)))
    parallel = Parallel(threads, backend="threading", return_as="generator_unordered", batch_size=1)
    finished = parallel(delayed(play)(number) for number in numbers)
    try:
        yield from finished
    finally:
        stop.set()
        with suppress(Exception):  # what is stopped may fail as it likes
            for _ in finished:
                pass
        running.wait_for_none()  # joblib leaves threads to themselves


class _Running:
    """Counts what is running."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_none(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)
