"""Replications in threads and processes of this machine give the same results and leave nothing behind."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from threading import Lock
from types import ModuleType

import numpy as np
import pytest

from banditrank import InvalidInputError, Policy, UCBRank, Utility, kdd2012, simulate
from banditrank.simulation._backends import local
from banditrank.simulation._backends.local import LocalBackend
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import AnyExperiment, Replication


def make_policy(fails_at: int | None = None, baggage: object = None) -> Policy:
    """Return a policy in plain Python, of a class that is picklable but not importable."""

    class MostClicked(Policy):
        name = "most-clicked"

        def __init__(self) -> None:
            self.baggage = baggage

        def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN202, ARG002
            if counts.rounds == fails_at:
                raise ArithmeticError("no ranking today")
            clicks = counts.rewards[user_type].sum(axis=1) + rng.uniform(0, 0.1, counts.n_items)
            return np.argsort(-clicks)[: counts.n_positions]

    return MostClicked()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Make processes look faster at once; return the indices that they run."""
    given: list[tuple[int, ...]] = []
    in_processes = local._run_in_processes

    def recorded(experiment, indices, workers):  # noqa: ANN001, ANN202
        given.append(tuple(indices))
        return in_processes(experiment, indices, workers)

    monkeypatch.setattr(local, "_run_in_processes", recorded)
    monkeypatch.setattr(local, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(local, "PROCESS_START_SECONDS", -1e9)
    return given


def counter() -> tuple[list[int], Callable[[int], None]]:
    made, lock = [0], Lock()

    def note(rounds: int) -> None:
        with lock:
            made[0] += rounds

    return made, note


def test_processes_give_the_same_results(processes: list) -> None:
    policy, (made, note) = make_policy(), counter()
    moved = simulate(policy, kdd2012(), 3000, 4, 3, workers=2, progress=note, keep_counts=True)
    assert processes == [(0, 1, 2, 3)], "must move after the first thousand rounds"
    assert made == [4 * 3000], "rounds that are played again must be told of once"
    stayed = simulate(policy, kdd2012(), 3000, 4, 3, workers=1, keep_counts=True)
    assert processes[1:] == [], "one worker must stay"
    assert np.array_equal(moved.regret, stayed.regret)
    assert moved.counts == stayed.counts
    moved.counts[0].record(0, [0, 1], rewards=[0, 1])  # they can be added to


def test_what_is_soon_finished_stays_here(processes: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "PROCESS_START_SECONDS", 1e9)
    simulate(make_policy(), kdd2012(), 2000, 2, 3, workers=2)
    assert processes == []


@pytest.mark.parametrize("reason", ["lock", "module"])
def test_what_cannot_be_sent_is_played_here(
    processes: list, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, (made, note) = make_policy(baggage=Lock() if reason == "lock" else None), counter()
    if reason == "module":  # that only this process has
        module, kind = ModuleType("distant"), type(policy)
        module.MostClicked, kind.__module__, kind.__qualname__ = kind, "distant", "MostClicked"
        monkeypatch.setitem(sys.modules, "distant", module)
    assert simulate(policy, kdd2012(), 2000, 3, 3, workers=2, progress=note).is_complete
    assert processes == [(0, 1, 2)]
    assert made == [3 * 2000]


def test_what_a_policy_raises_in_a_process_is_raised_here(processes: list) -> None:
    with pytest.raises(ArithmeticError, match="no ranking today"):
        simulate(make_policy(fails_at=1500), kdd2012(), 3000, 4, 3, workers=2)
    assert processes == [(0, 1, 2, 3)]


def test_what_fails_in_a_thread_stops_the_others() -> None:
    def failing(value: float) -> float:
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError("beyond")
        return value

    policy = UCBRank(
        coefficient=0.5, treatment="equal", utility=Utility.from_function(failing, shape="non-concave")
    )
    made, note = counter()
    with pytest.raises(InvalidInputError, match="ZeroDivisionError: beyond"):
        simulate(policy, kdd2012(), 10_000_000, 4, 5, workers=2, progress=note)
    assert made[0] < 10_000_000


class CountedBackend(LocalBackend):
    """Local backend that counts the replications that its caller has kept."""

    n_kept = 0

    def run(
        self, experiment: AnyExperiment, indices: Sequence[int], advance: Advance
    ) -> Generator[Replication]:
        with closing(super().run(experiment, indices, advance)) as finished:
            for replication in finished:
                yield replication
                self.n_kept += 1


@pytest.mark.usefixtures("default_interrupt")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_stops_everything_and_keeps_what_is_finished(workers: int) -> None:
    """A real signal, sent as soon as two replications were kept; the rest is far too long."""
    played, lock = [0], Lock()
    backend = CountedBackend(workers)
    is_sent = threading.Event()

    def note(rounds: int) -> None:
        with lock:
            played[0] += rounds
            if backend.n_kept < 2 or is_sent.is_set():
                return
            is_sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    result = simulate(
        UCBRank(coefficient=0.25), kdd2012(), 100_000, 100_000, 5, backend=backend, progress=note
    )
    at_the_end = played[0]
    assert 1 <= len(result.replications) < 100_000
    whole = simulate(UCBRank(coefficient=0.25), kdd2012(), 100_000, int(result.replications.max()) + 1, 5)
    assert np.array_equal(result.regret, whole.regret[result.replications])
    assert played[0] == at_the_end, "nothing may go on"
