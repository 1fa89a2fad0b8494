"""Replications on this machine, with joblib: in threads, in processes, or one after the other.

Compiled loops release the global interpreter lock, so that replications of compiled policies run in threads.
Policies in plain Python hold the lock. They start in this thread and move to processes if these are estimated
to finish sooner, because a process imports everything before its first round, which takes longer than a small
simulation.
"""

import os
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from joblib import Parallel, delayed

from banditrank._checks import check_workers
from banditrank.policies._base import CompiledPolicy
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.pickling import PicklingError, pickle_experiment, replicate_pickled
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import AnyExperiment, ContextualExperiment, Replication
from banditrank.simulation._run import replicate

PROBE_SECONDS = 1.0  # time in this thread before processes are considered
PROCESS_START_SECONDS = 4.0  # estimated start-up time of processes


class LocalBackend(Backend):
    """Threads or processes of this machine.

    Results do not depend on which of them run a replication.

    Parameters
    ----------
    workers
        Maximum number of concurrent replications, up to 1,024; the number of processors by default.

    Raises
    ------
    InvalidInputError
        If the number of workers is out of range.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_workers("workers", workers) or available_cpus()

    def run(
        self, experiment: AnyExperiment, indices: Sequence[int], advance: Advance
    ) -> Generator[Replication]:
        """Yield the replications with these indices as they finish."""
        if isinstance(experiment, ContextualExperiment) or isinstance(experiment.policy, CompiledPolicy):
            return _run_in_threads(experiment, indices, self.workers, advance)
        return _run_interpreted(experiment, indices, self.workers, advance)


def available_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Stopped(Exception):  # noqa: N818 - not an error: the caller was interrupted
    """A replication was stopped before its end."""


def _run_in_threads(
    experiment: AnyExperiment, indices: Sequence[int], workers: int, advance: Advance
) -> Generator[Replication]:
    """Yield replications as they finish; with one worker they run in the caller's thread."""
    stop, running = threading.Event(), _RunningCount()

    def advance_or_stop(rounds: int) -> None:
        if stop.is_set():
            raise _Stopped
        advance(rounds)

    def run_one(index: int) -> Replication:
        with running.counted():
            if stop.is_set():
                raise _Stopped
            return replicate(experiment, index, advance_or_stop)

    threads = max(1, min(workers, len(indices)))
    parallel = Parallel(threads, backend="threading", return_as="generator_unordered", batch_size=1)
    finished = parallel(delayed(run_one)(index) for index in indices)
    try:
        yield from finished
    finally:
        stop.set()
        with suppress(Exception):  # errors of stopped replications are of no interest
            for _ in finished:
                pass
        running.wait_for_zero()  # joblib does not wait for its threads


class _RunningCount:
    """Number of running replications, and a wait until it is zero."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_zero(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0)


def _run_interpreted(
    experiment: AnyExperiment, indices: Sequence[int], workers: int, advance: Advance
) -> Generator[Replication]:
    """Yield replications as they finish: in this thread, then in processes if these are faster."""
    missing = list(indices)
    estimator = _SpeedEstimator(experiment.horizon, workers, advance)
    while missing:
        try:
            replication = replicate(experiment, missing[0], estimator.advance_for(len(missing)))
        except _ProcessesAreFaster:
            break
        missing.pop(0)
        yield replication
    if not missing:
        return
    advance = _skip_rounds(estimator.rounds_of_current, advance)
    try:
        with closing(_run_in_processes(experiment, tuple(missing), workers)) as finished:
            for replication in finished:
                advance(experiment.horizon)
                missing.remove(replication.index)
                yield replication
    except PicklingError:  # processes cannot run it
        for index in missing:
            yield replicate(experiment, index, advance)


class _ProcessesAreFaster(Exception):  # noqa: N818 - not an error
    """Processes are estimated to finish the remaining replications sooner."""


class _SpeedEstimator:
    """Compares the remaining time in this thread with that in processes, from the rounds so far."""

    def __init__(self, horizon: int, workers: int, advance: Advance) -> None:
        self._horizon = horizon
        self._workers = workers
        self._advance = advance
        self._start = time.perf_counter()
        self._rounds = 0
        self.rounds_of_current = 0

    def advance_for(self, n_missing: int) -> Advance:
        """Return the progress callback for the first of the missing replications."""
        self.rounds_of_current = 0
        rounds_to_restart = self._horizon * n_missing
        workers = min(self._workers, n_missing)

        def advance(rounds: int) -> None:
            self._advance(rounds)
            self._rounds += rounds
            self.rounds_of_current += rounds
            elapsed = time.perf_counter() - self._start
            if workers == 1 or elapsed < PROBE_SECONDS or self.rounds_of_current == self._horizon:
                return
            restarted = rounds_to_restart * elapsed / self._rounds
            continued = restarted - self.rounds_of_current * elapsed / self._rounds
            if PROCESS_START_SECONDS + restarted / workers < continued:
                raise _ProcessesAreFaster

        return advance


def _skip_rounds(reported: int, advance: Advance) -> Advance:
    """Return a progress callback that ignores rounds already reported, which are run again."""

    def advance_after(rounds: int) -> None:
        nonlocal reported
        again = min(reported, rounds)
        reported -= again
        if rounds > again:
            advance(rounds - again)

    return advance_after


def _run_in_processes(
    experiment: AnyExperiment, indices: Sequence[int], workers: int
) -> Generator[Replication]:
    payload = pickle_experiment(experiment)
    count = min(workers, len(indices))
    parallel = Parallel(count, backend="loky", return_as="generator_unordered", batch_size=1)
    finished = parallel(delayed(replicate_pickled)(payload, index) for index in indices)
    try:
        yield from finished
    finally:
        with warnings.catch_warnings():  # joblib warns of tasks that are stopped before their end
            warnings.simplefilter("ignore")
            finished.close()
