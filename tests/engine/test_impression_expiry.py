"""What is old is thrown away, and stays in the counts."""

from collections.abc import Callable

import pytest
from live import Clock, a_ranker, a_surface, play, seeded, wait_until

from banditrank.dashboard.surface_monitor import SurfaceMonitor
from banditrank.engine.counts_replica import CountsReplica
from banditrank.engine.group_commit import CommitOutcome
from banditrank.engine.impression_expiry import ImpressionExpirer
from banditrank.engine.ranking_ids import new_key
from banditrank.errors import ExpiredRankingError, PrunedError, StoreUnavailableError
from banditrank.storage.memory import MemoryStore
from banditrank.storage.records import (
    NOT_CLICKED,
    CommitStatus,
    Event,
    Impression,
    Snapshot,
    min_key,
    pack_ranking,
)


def test_closing_saves_a_snapshot_and_the_next_begins_there() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 20, seed=1)
        counts = ranker.counts()
    assert store.snapshot(1).version == 20
    with a_ranker(store=store) as ranker:
        assert ranker.counts() == counts


def test_many_changes_are_summed_up_while_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine.counts_replica._CHANGES_A_SNAPSHOT", 5)
    store, clock = MemoryStore(), Clock()
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 8, seed=1)
        clock.now += 2.0
        wait_until(lambda: store.snapshot(1).version >= 5)


def test_a_snapshot_is_saved_when_there_is_more_to_add_up_than_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("banditrank.engine.counts_replica._CHANGES_A_SNAPSHOT", 2)
    store, surface = MemoryStore(), a_surface()
    store.create_surface("home", surface.definition)
    one, other = (CountsReplica(store, 1, surface) for _ in range(2))
    rounds = iter(range(1, 100))

    def change() -> None:
        shown = Impression(1, new_key(next(rounds), bytes(8)), pack_ranking(0, (0, 1)))
        store.commit([Event(shown, NOT_CLICKED)])
        for learned in (one, other):
            learned.catch_up()

    change()
    assert not one.is_snapshot_due, "one change is too few"
    change()
    assert one.is_snapshot_due
    assert not one.has_newer_snapshot()
    one.save_snapshot(1)
    size = len(store.snapshot(1).cells)
    assert other.is_snapshot_due
    assert other.has_newer_snapshot(), "the other did it"
    assert not other.is_snapshot_due
    change()
    store.save_snapshot(1, Snapshot(*one.cells(), 1, bytes(10 * size)))
    fresh = CountsReplica(store, 1, surface)
    for _ in range(2):
        change()
    fresh.catch_up()
    assert one.is_snapshot_due
    assert not fresh.is_snapshot_due, "these are fewer bytes than the snapshot's"
    for _ in range(20):
        change()
    fresh.catch_up()
    assert fresh.is_snapshot_due


def test_old_rankings_and_changes_are_forgotten_and_the_counts_stay() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker.feedback(shown.id)
        play(ranker, 10, seed=1)
        counts = ranker.counts()
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_until(lambda: not ranker._runtime.is_due())
        clock.now += 3600.0
        wait_until(lambda: len(store.changes(1, after=0)) == 1)
        assert ranker.counts() == counts
        with pytest.raises(ExpiredRankingError):
            ranker.feedback(shown.id)
        play(ranker, 3, seed=2)
        assert ranker.counts().rounds == 14
    with a_ranker(surface, store, clock=clock) as ranker:
        assert ranker.counts().rounds == 14


def test_a_replica_too_far_behind_begins_at_a_snapshot() -> None:
    store = MemoryStore()
    surface = a_surface()
    with a_ranker(surface, store) as ranker:
        play(ranker, 4, seed=1)
        behind, further = (CountsReplica(store, 1, surface) for _ in range(2))
        play(ranker, 6, seed=2)
        store.save_snapshot(1, Snapshot(*CountsReplica(store, 1, surface).cells(), saved=5))
        store.forget(1, before=10)
        further.reach(10)
        assert further.version == 10
        play(ranker, 2, seed=3)
        behind.catch_up()
        assert behind.version == 12
        numbers = tuple(range(5))
        assert behind.counts(surface, numbers)[1] == ranker.counts()
        with pytest.raises(PrunedError, match="counts of version 7 were thrown away"):
            CountsReplica(store, 1, surface, up_to=7)
        assert CountsReplica(store, 1, surface, up_to=11).version == 11


def test_a_clock_near_1970_does_no_harm() -> None:
    clock = Clock(0.0)
    with a_ranker(clock=clock) as ranker:
        shown = ranker.rank("new")
        ranker._runtime.tend()
        assert ranker.feedback(shown.id) == "counted"


def test_what_was_never_reported_is_counted_before_it_is_forgotten() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        for _ in range(3):
            ranker.rank("new")
    clock.now += 5000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_until(lambda: not ranker._runtime.is_due())
        assert ranker.counts().rounds == 0, "a clock that may be ahead is not believed at once"
        clock.now += 60.0
        wait_until(lambda: ranker.counts().rounds == 3)

        def is_pruned() -> bool:
            clock.now += 10.0
            return store.commit([Event(old, NOT_CLICKED)]).statuses == [CommitStatus.PRUNED]

        old = Impression(1, min_key(int(clock.now - 4000.0) * 1000), pack_ranking(0, (0, 1)))
        store.commit([Event(old, NOT_CLICKED)])
        wait_until(is_pruned)


def test_a_clock_that_was_set_settles_and_forgets_nothing() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    with a_ranker(surface, store, clock=clock) as ranker:
        shown, later = ranker.rank("new"), ranker.rank("new")
        ranker.feedback(shown.id)
        wait_until(lambda: ranker._engine.committer.queued == 0)
        housekeeping = ranker._runtime._expirer
        for sure in (housekeeping._settling_time, housekeeping._forgetting_time):
            sure._steady = lambda: 0.0
        clock.now += 5000.0
        ranker._runtime.tend()
        clock.now -= 5000.0
        ranker._runtime.tend()
        assert ranker.feedback(shown.id) == "repeated"
        assert ranker.feedback(later.id, clicked=later.items[0]) == "counted"


def test_a_process_whose_clock_is_ahead_does_no_harm_to_others() -> None:
    store, clock, ahead = MemoryStore(), Clock(), Clock(1e9 + 60 * 86_400.0)
    with a_ranker(store=store, clock=clock) as healthy:
        shown = healthy.rank("new")
        play(healthy, 3, seed=1)
        wait_until(lambda: healthy._engine.committer.queued == 0)
        for _ in range(2):  # also if it is started again
            with a_ranker(store=store, clock=ahead, random_bytes=seeded(2)) as wrong:
                for _ in range(4):
                    wait_until(lambda wrong=wrong: not wrong._runtime.is_due())
                    ahead.now += 1.0
        assert healthy.feedback(shown.id, clicked=shown.items[0]) == "counted"
        play(healthy, 3, seed=2)
        assert healthy.counts().rounds == 7


def test_a_process_that_lives_for_a_moment_forgets_what_was_old_at_the_latest_change() -> None:
    store, clock = MemoryStore(), Clock()
    surface = a_surface(keep_seconds=1000.0, attribution_seconds=10.0)
    ids = []
    for _ in range(3):
        with a_ranker(surface, store, clock=clock) as ranker:
            wait_until(lambda ranker=ranker: not ranker._runtime.is_due())
            ids += play(ranker, 1, seed=1)
        clock.now += 2000.0
    with a_ranker(surface, store, clock=clock) as ranker:
        wait_until(lambda: not ranker._runtime.is_due())
        keys = [ranker._engine.issued_ranking(ranking_id)[1].impression.key for ranking_id in ids]
    assert [store.outcome(1, key) is None for key in keys] == [True, True, False]


class CountingJournal:
    """A journal that writes nothing until it is told to."""

    def __init__(self) -> None:
        self.handed_over: list[tuple[Event, Callable[[CommitOutcome], None]]] = []

    def settle(self, entry: Event, done: Callable[[CommitOutcome], None]) -> None:
        self.handed_over.append((entry, done))


def test_lapsed_rankings_are_handed_to_the_journal_once() -> None:
    store, clock, committer = MemoryStore(), Clock(), CountingJournal()
    surface = a_surface()
    store.create_surface("home", surface.definition)
    entries = [
        Event(Impression(1, new_key(1000, bytes([0] * 6 + [*divmod(n, 256)])), pack_ranking(0, (0, 1))), None)
        for n in range(1500)
    ]
    store.commit(entries)
    housekeeping = ImpressionExpirer(1, store, committer, clock, 1e9, SurfaceMonitor(surface, clock))
    assert housekeeping.is_due()
    housekeeping.tend(surface)
    assert len(committer.handed_over) == 1000
    clock.now += 10.0
    assert not housekeeping.is_due(), "they are not settled yet"
    for entry, done in committer.handed_over:
        store.commit([entry])
        done(CommitStatus.COUNTED)
    assert housekeeping.is_due(), "there are more"
    housekeeping.tend(surface)
    assert len(committer.handed_over) == 1500


def test_what_the_journal_refuses_is_handed_over_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock, committer = MemoryStore(), Clock(), CountingJournal()
    surface = a_surface()
    store.create_surface("home", surface.definition)
    store.commit([Event(Impression(1, new_key(1000, bytes(8)), pack_ranking(0, (0, 1))), None)])
    housekeeping = ImpressionExpirer(1, store, committer, clock, 1e9, SurfaceMonitor(surface, clock))

    def refuse(*_: object) -> None:
        raise StoreUnavailableError("too far behind")

    with monkeypatch.context() as patched:
        patched.setattr(committer, "settle", refuse)
        with pytest.raises(StoreUnavailableError):
            housekeeping.tend(surface)
    clock.now += 2.0
    assert housekeeping.is_due()
    housekeeping.tend(surface)
    assert len(committer.handed_over) == 1
