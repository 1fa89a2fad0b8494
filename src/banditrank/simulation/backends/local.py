"""Replications on this machine, with joblib."""

import os
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from joblib import Parallel, delayed

from banditrank.checks import check_workers
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.parcel import UnsendableError, pack, play
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication
from banditrank.simulation.run import replicate

PATIENCE = 1.0  # seconds after which it is asked whether processes would be sooner
START_UP = 4.0  # seconds that processes may need before they play


def interpreted(
    experiment: Experiment, numbers: Sequence[int], workers: int, advance: Advance
) -> Generator[Replication]:
    """Yield replications as they finish."""
    missing = list(numbers)
    pace = _Pace(experiment.horizon, workers, advance)
    while missing:
        try:
            replication = replicate(experiment, missing[0], pace.of_the_first_of(len(missing)))
        except _ProcessesAreSooner:
            break
        missing.pop(0)
        yield replication
    if not missing:
        return
    advance = _without_the_first(pace.played_of_this, advance)
    try:
        with closing(_in_processes(experiment, tuple(missing), workers)) as finished:
            for replication in finished:
                advance(experiment.horizon)
                missing.remove(replication.number)
                yield replication
    except UnsendableError:  # it can be played nowhere else
        for number in missing:
            yield replicate(experiment, number, advance)


class _ProcessesAreSooner(Exception):  # noqa: N818 - not an error
    """The rest would be finished sooner in processes."""


class _Pace:
    """Estimates how long the rest takes here and in processes, from the rounds played so far."""

    def __init__(self, horizon: int, workers: int, advance: Advance) -> None:
        self._horizon = horizon
        self._workers = workers
        self._advance = advance
        self._start = time.perf_counter()
        self._played = 0
        self.played_of_this = 0

    def of_the_first_of(self, replications: int) -> Advance:
        """Return what to call with the rounds just played of the first of so many missing replications."""
        self.played_of_this = 0
        rounds_to_begin_anew = self._horizon * replications
        workers = min(self._workers, replications)

        def advance(rounds: int) -> None:
            self._advance(rounds)
            self._played += rounds
            self.played_of_this += rounds
            passed = time.perf_counter() - self._start
            if workers == 1 or passed < PATIENCE or self.played_of_this == self._horizon:
                return
            anew = rounds_to_begin_anew * passed / self._played
            here = anew - self.played_of_this * passed / self._played
            if START_UP + anew / workers < here:
                raise _ProcessesAreSooner

        return advance


def _without_the_first(told: int, advance: Advance) -> Advance:
    """Return what does not tell of so many rounds: they are played again."""

    def advance_after(rounds: int) -> None:
        nonlocal told
        again = min(told, rounds)
        told -= again
        if rounds > again:
            advance(rounds - again)

    return advance_after


def _in_processes(experiment: Experiment, numbers: Sequence[int], workers: int) -> Generator[Replication]:
    parcel = pack(experiment)
    count = min(workers, len(numbers))
    parallel = Parallel(count, backend="loky", return_as="generator_unordered", batch_size=1)
    finished = parallel(delayed(play)(parcel, number) for number in numbers)
    try:
        yield from finished
    finally:
        with warnings.catch_warnings():  # joblib would warn of what is stopped before its end
            warnings.simplefilter("ignore")
            finished.close()


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


class LocalBackend(Backend):
    """Threads or processes of this machine.

    Compiled loops release the interpreter's lock, so threads run them side by side. Policies in plain Python
    do not: they run one after the other, and in processes as soon as these promise to be done sooner. The
    results are the same.

    Parameters
    ----------
    workers
        How many replications run at once, up to 1,024; as many as there are processors when left out.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_workers("workers", workers) or processors()

    def run(self, experiment: Experiment, numbers: Sequence[int], advance: Advance) -> Generator[Replication]:
        """Yield the replications with these numbers as they finish."""
        here = in_threads if isinstance(experiment.policy, CompiledPolicy) else interpreted
        return here(experiment, numbers, self.workers, advance)


def processors() -> int:
    """Return how many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
