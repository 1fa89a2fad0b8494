"""Conformance checks of concurrent reads and commits."""

import threading
from collections import Counter
from collections.abc import Callable
from itertools import count

from banditrank.storage._base import Store
from banditrank.storage._records import NOT_CLICKED, CommitStatus, Event, Snapshot
from banditrank.testing._store_events import CLICK, OpenStore, read_rounds, read_totals, shown

_THREADS = 4
_ROUNDS = 25


def run_in_threads(*jobs: Callable[[], None]) -> None:
    """Call functions in parallel threads, and raise the first error of any of them."""
    failures: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def check_concurrent_commits(open_store: OpenStore) -> None:
    """Check that commits of parallel threads and processes are neither lost nor counted twice."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    numbers = count()

    def writing(own: Store) -> Callable[[], None]:
        def write() -> None:
            for _ in range(_ROUNDS):
                number = next(numbers)
                own.commit([Event(shown(surface, number), CLICK), Event(shown(surface, number // 2), CLICK)])

        return write

    run_in_threads(*(writing(store if number % 2 else open_store()) for number in range(_THREADS)))
    assert read_rounds(store, surface) == _THREADS * _ROUNDS
    versions = [change.version for change in store.changes(surface, after=0, limit=10_000)]
    assert versions == list(range(1, len(versions) + 1))


def check_concurrent_feedback_counts_once(open_store: OpenStore) -> None:
    """Check that exactly one of several parallel feedbacks for an impression counts."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    statuses: list[list[CommitStatus]] = []

    def writing(own: Store, number: int) -> Callable[[], None]:
        outcome = CLICK if number % 2 else NOT_CLICKED

        def write() -> None:
            entries = [Event(shown(surface, ranking), outcome) for ranking in range(_ROUNDS)]
            if number > 1:
                entries.reverse()
            given: list[CommitStatus] = []
            for start in range(0, _ROUNDS, 5):
                given += own.commit(entries[start : start + 5]).statuses
            statuses.append(given if number < 2 else given[::-1])

        return write

    run_in_threads(*(writing(open_store(), number) for number in range(_THREADS)))
    for given in zip(*statuses, strict=True):
        of_kind = Counter(given)
        assert of_kind == {CommitStatus.COUNTED: 1, CommitStatus.REPEATED: 1, CommitStatus.CONFLICTING: 2}, (
            given
        )
    assert read_rounds(store, surface) == _ROUNDS


def check_concurrent_readers_see_every_change(open_store: OpenStore) -> None:
    """Check that a reader that runs in parallel to commits sees all changes without gaps."""
    store, reader = open_store(), open_store()
    surface = store.create_surface("home", "{}").surface_id
    seen: list[int] = []
    done = threading.Event()

    def writing(own: Store, number: int) -> Callable[[], None]:
        def write() -> None:
            for ranking in range(_ROUNDS):
                own.commit([Event(shown(surface, 1000 * number + ranking), CLICK)])

        return write

    def read() -> None:
        finished = False
        while not finished:
            finished = done.is_set()  # before reading: what was written until then must be seen
            changes = reader.changes(surface, after=len(seen))
            seen.extend(change.version for change in changes)
            assert seen == list(range(1, len(seen) + 1))

    def write_all() -> None:
        try:
            run_in_threads(writing(store, 1), writing(open_store(), 2))
        finally:
            done.set()

    run_in_threads(read, write_all)
    assert len(seen) == 2 * _ROUNDS


def check_no_deadlocks(open_store: OpenStore) -> None:
    """Check that groups of the same surfaces in different orders, pruning and updates do not deadlock."""
    store = open_store()
    surfaces = [store.create_surface(name, "{}").surface_id for name in ("one", "two")]

    def writing(own: Store, number: int) -> Callable[[], None]:
        def write() -> None:
            for ranking in range(_ROUNDS):
                entries = [Event(shown(one, 1000 * number + ranking), CLICK) for one in surfaces]
                entries += [Event(shown(one, ranking), CLICK) for one in surfaces]
                own.commit(entries if number % 2 else entries[::-1])

        return write

    def tend() -> None:
        own = open_store()
        for revision in range(1, _ROUNDS + 1):
            before = own.find_surface("two")
            assert before is not None
            assert own.update_surface(before, str(revision)) is not None
            for surface in surfaces:
                version = own.versions()[surface].version
                cells = read_totals(own, surface, up_to=version).cells()
                own.save_snapshot(surface, Snapshot(version, cells, revision))
                own.prune(surface, before_ms=revision)
            own.check()

    run_in_threads(tend, *(writing(open_store(), number) for number in (1, 2, 3)))
    for surface in surfaces:
        assert read_rounds(store, surface) == 4 * _ROUNDS


CONCURRENCY_CHECKS = (
    check_concurrent_commits,
    check_concurrent_feedback_counts_once,
    check_concurrent_readers_see_every_change,
    check_no_deadlocks,
)
