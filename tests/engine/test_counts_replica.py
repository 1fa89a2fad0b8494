"""Counts replicas: equal to the sum of all changes, also after changes were pruned; and their snapshots."""

import pytest
from helpers.live import Clock, a_ranker, a_surface, play, wait_until

from banditrank.engine._counts_replica import CountsReplica
from banditrank.engine._ranking_ids import new_key
from banditrank.errors import PrunedError
from banditrank.storage._memory import MemoryStore
from banditrank.storage._records import NOT_CLICKED, Change, Event, Impression, Snapshot, pack_ranking


def test_closing_saves_a_snapshot_and_the_next_process_starts_from_it() -> None:
    store = MemoryStore()
    with a_ranker(store=store) as ranker:
        play(ranker, 20, seed=1)
        counts = ranker.counts()
    assert store.snapshot(1).version == 20
    with a_ranker(store=store) as ranker:
        assert ranker.counts() == counts


def test_a_snapshot_is_saved_after_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banditrank.engine._counts_replica._MIN_CHANGES_PER_SNAPSHOT", 5)
    store, clock = MemoryStore(), Clock()
    with a_ranker(store=store, clock=clock) as ranker:
        play(ranker, 8, seed=1)
        clock.now += 2.0
        wait_until(lambda: store.snapshot(1).version >= 5)


def test_a_snapshot_is_due_when_the_changes_since_the_latest_are_larger_than_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("banditrank.engine._counts_replica._MIN_CHANGES_PER_SNAPSHOT", 2)
    store, surface = MemoryStore(), a_surface()
    store.create_surface("home", surface.definition)
    one, other = (CountsReplica(store, 1, surface) for _ in range(2))
    numbers = iter(range(1, 100))

    def change() -> None:
        impression = Impression(1, new_key(next(numbers), bytes(8)), pack_ranking(0, (0, 1)))
        store.commit([Event(impression, NOT_CLICKED)])
        for replica in (one, other):
            replica.catch_up()

    change()
    assert not one.is_snapshot_due, "one change is too few"
    change()
    assert one.is_snapshot_due
    assert not one.has_newer_snapshot()
    one.save_snapshot(1)
    n_bytes = len(store.snapshot(1).cells)
    assert other.is_snapshot_due
    assert other.has_newer_snapshot(), "the other replica saved it"
    assert not other.is_snapshot_due
    change()
    version, cells = one.cells()
    store.save_snapshot(1, Snapshot(version, cells + bytes(10 * n_bytes), 1))  # padded with cells of zeros
    fresh = CountsReplica(store, 1, surface)
    for _ in range(2):
        change()
    fresh.catch_up()
    assert one.is_snapshot_due
    assert not fresh.is_snapshot_due, "these changes are smaller than the snapshot"
    for _ in range(20):
        change()
    fresh.catch_up()
    assert fresh.is_snapshot_due


def test_a_replica_too_far_behind_continues_from_a_snapshot() -> None:
    store = MemoryStore()
    surface = a_surface()
    applied: list[int] = []
    with a_ranker(surface, store) as ranker:
        play(ranker, 4, seed=1)
        behind = CountsReplica(store, 1, surface, on_change=lambda change: applied.append(change.version))
        further = CountsReplica(store, 1, surface)
        play(ranker, 6, seed=2)
        store.save_snapshot(1, Snapshot(*CountsReplica(store, 1, surface).cells(), saved_at_ms=5))
        store.prune(1, before_ms=10)
        further.reach(10)
        assert further.version == 10
        play(ranker, 2, seed=3)
        behind.catch_up()
        assert behind.version == 12
        assert applied == [1, 2, 3, 4, 11, 12], "changes behind a snapshot are not passed on"
        numbers = tuple(range(5))
        assert behind.counts(surface, numbers)[1] == ranker.counts()
        with pytest.raises(PrunedError, match="counts of version 7 were pruned"):
            CountsReplica(store, 1, surface, up_to=7)
        assert CountsReplica(store, 1, surface, up_to=11).version == 11
        at_snapshot = CountsReplica(store, 1, surface, up_to=10).counts(surface, numbers)[1]
        assert CountsReplica.earliest_counts(store, 1, surface, since=7) == at_snapshot


def test_the_version_includes_a_change_when_the_callback_receives_it() -> None:
    store, surface = MemoryStore(), a_surface()
    store.create_surface("home", surface.definition)
    seen: list[tuple[int, int]] = []

    def on_change(change: Change) -> None:
        seen.append((change.version, replica.version))

    replica = CountsReplica(store, 1, surface, on_change=on_change)
    for number in range(3):
        impression = Impression(1, new_key(1000 + number, bytes(8)), pack_ranking(0, (0, 1)))
        (change,) = store.commit([Event(impression, NOT_CLICKED)]).changes
        assert not replica.apply(change)
        assert not replica.apply(change), "repeated"
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert replica.rounds == 3
