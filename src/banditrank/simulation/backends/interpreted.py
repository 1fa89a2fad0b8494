"""Replications of policies in plain Python: one after the other, or in processes if that is sooner.

Threads would only get into each other's way, for the interpreter has one lock. Processes must import
everything before they play, which takes longer than a small simulation does. So it begins here, and moves
when it turns out to be slow.
"""

import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import closing

from joblib import Parallel, delayed

from banditrank.simulation.backends.pickling import PicklingError, pickle_experiment, play
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
    except PicklingError:  # it can be played nowhere else
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
    payload = pickle_experiment(experiment)
    count = min(workers, len(numbers))
    parallel = Parallel(count, backend="loky", return_as="generator_unordered", batch_size=1)
    finished = parallel(delayed(play)(payload, number) for number in numbers)
    try:
        yield from finished
    finally:
        with warnings.catch_warnings():  # joblib would warn of what is stopped before its end
            warnings.simplefilter("ignore")
            finished.close()
