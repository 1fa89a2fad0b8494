"""Conformance checks of snapshots, pruning and purging."""

from functools import partial

from banditrank.storage._base import Store
from banditrank.storage._records import (
    EMPTY_SNAPSHOT,
    NOT_CLICKED,
    CommitStatus,
    Event,
    SavedTimeSeries,
    Snapshot,
)
from banditrank.testing._store_concurrency import run_in_threads
from banditrank.testing._store_events import CLICK, OpenStore, read_rounds, read_totals, shown


def check_snapshots_replace_changes(open_store: OpenStore) -> None:
    """Check that changes up to a snapshot can be pruned, and versions continue."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    assert store.snapshot(surface) == EMPTY_SNAPSHOT
    for number in range(4):
        store.commit([Event(shown(surface, number, expires_at_ms=10 * number), CLICK)])
        if number in (0, 2):
            version = number + 1
            cells = read_totals(store, surface, up_to=version).cells()
            store.save_snapshot(surface, Snapshot(version, cells, saved_at_ms=10 * number))
    assert store.snapshot(surface, up_to=2).version == 1
    store.prune(surface, before_ms=25)
    assert [change.version for change in store.changes(surface, after=0)] == [4]
    assert open_store().snapshot(surface).version == 3
    assert store.snapshot(surface, up_to=2) == EMPTY_SNAPSHOT
    assert read_rounds(store, surface) == 4
    assert store.commit([Event(shown(surface, 9), CLICK)]).changes[0].version == 5
    later = store.commit([Event(shown(surface, 3, expires_at_ms=30), CLICK)])
    assert later.statuses == [CommitStatus.REPEATED], "a ranking that expires later was forgotten"
    earlier = store.commit([Event(shown(surface, 1, expires_at_ms=10), CLICK)])
    assert earlier.statuses == [CommitStatus.PRUNED], "an old ranking may be counted twice"


def check_snapshots_are_written_once(open_store: OpenStore) -> None:
    """Check that the first snapshot of a version stays, and one of an older version may be saved later."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.save_snapshot(surface, Snapshot(5, b"five", 50))
    store.save_snapshot(surface, Snapshot(5, b"five", 60))
    store.save_snapshot(surface, Snapshot(3, b"three", 70))
    assert open_store().snapshot(surface) == Snapshot(5, b"five", 50)
    assert store.snapshot(surface, up_to=4) == Snapshot(3, b"three", 70)
    assert store.snapshot(surface, up_to=2) == EMPTY_SNAPSHOT


def check_pruned_changes_leave_a_gap(open_store: OpenStore) -> None:
    """Check that reading from a pruned version returns later changes, also if there were none since."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    for number in range(3):
        store.commit([Event(shown(surface, number), CLICK)])
    store.save_snapshot(surface, Snapshot(3, read_totals(store, surface).cells(), 10))
    store.prune(surface, before_ms=20)
    assert [change.version for change in open_store().changes(surface, after=1)] == [3]
    assert store.versions()[surface].version == 3
    assert read_rounds(store, surface) == 3
    store.prune(surface, before_ms=20)
    assert store.commit([Event(shown(surface, 4), CLICK)]).changes[0].version == 4


def check_pruning_of_many_impressions(open_store: OpenStore) -> None:
    """Check that all old impressions are pruned, however many, and no others."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    entries = [
        Event(shown(surface, number, expires_at_ms=1000 + number % 2), CLICK if number % 3 else None)
        for number in range(3400)
    ]
    store.commit(entries)
    store.prune(surface, before_ms=1001)
    left = [entry for entry in entries if entry.impression.expires_at_ms > 1000]
    found = {entry.impression.key: store.outcome(surface, entry.impression.key) for entry in entries[::97]}
    expected = {entry.impression.key: entry.outcome if entry in left else None for entry in entries[::97]}
    assert found == expected
    still_open = store.pending_impressions(surface, since_ms=0, until_ms=2000, limit=5000)
    assert still_open == [entry.impression for entry in left if entry.outcome is None]


def check_pruned_impressions_are_not_counted_again(open_store: OpenStore) -> None:
    """Check that feedback for a pruned impression does not count, whichever process commits it."""
    store, other = open_store(), open_store()
    surface = store.create_surface("home", "{}").surface_id
    old, new = shown(surface, 1, expires_at_ms=1000), shown(surface, 2, expires_at_ms=3000)
    store.commit([Event(old, CLICK)])
    other.prune(surface, before_ms=2000)
    other.prune(surface, before_ms=1500)
    result = store.commit([Event(old, CLICK), Event(new, CLICK), Event(old, None), Event(old, NOT_CLICKED)])
    assert result.statuses == [
        CommitStatus.PRUNED,
        CommitStatus.COUNTED,
        CommitStatus.RECORDED,
        CommitStatus.PRUNED,
    ]
    assert store.pending_impressions(surface, since_ms=0, until_ms=5000) == []
    assert read_rounds(other, surface) == 2


def check_deleted_surfaces_are_purged(open_store: OpenStore) -> None:
    """Check that all data of a deleted surface are purged, also those that are written after the deletion."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.commit([Event(shown(surface, 1), CLICK), Event(shown(surface, 2), None)])
    store.save_snapshot(surface, Snapshot(1, b"", 10))
    store.save_time_series(surface, SavedTimeSeries(1, b"series"))
    other = open_store()
    assert store.delete_surface("home")
    late = other.commit([Event(shown(surface, 3), CLICK), Event(shown(surface, 2), None)])
    assert late == ([CommitStatus.DELETED, CommitStatus.DELETED], [])
    other.save_snapshot(surface, Snapshot(2, b"", 20))
    other.save_time_series(surface, SavedTimeSeries(2, b"late"))
    other.prune(surface, before_ms=5)
    purge_all(store)
    assert_nothing_is_left(other, surface)
    assert store.versions() == {}


def check_large_surfaces_are_purged_in_steps(open_store: OpenStore) -> None:
    """Check that all data of a large deleted surface are purged by any process, and no other data."""
    store, other = open_store(), open_store()
    large, small = (
        store.create_surface("large", "{}").surface_id,
        store.create_surface("small", "{}").surface_id,
    )
    kept = [Event(shown(small, 1), CLICK), Event(shown(small, 2), None)]
    store.commit([*(Event(shown(large, number), CLICK) for number in range(2500)), *kept])
    for number in range(3000, 3010):
        store.commit([Event(shown(large, number), None)])
    assert store.delete_surface("large")
    assert not other.delete_surface("large")
    again = other.create_surface("large", "{}").surface_id
    open_store()  # which does not wait for what is left
    purge_all(store, other)
    assert_nothing_is_left(store, large)
    assert store.versions().keys() == {small, again}
    assert read_rounds(store, small) == 1
    assert store.pending_impressions(small, since_ms=0, until_ms=10_000) == [kept[1].impression]
    assert store.definition(small, revision=1) == "{}"
    assert not other.purge_deleted(), "there is nothing left to be done"


def purge_all(*stores: Store) -> None:
    """Throw away all that is left of deleted surfaces, several at once."""

    def purge_deleted(store: Store) -> None:
        while store.purge_deleted():
            pass

    run_in_threads(*(partial(purge_deleted, store) for store in stores))


def assert_nothing_is_left(store: Store, surface: int) -> None:
    """Assert that no data of a surface are left."""
    assert store.snapshot(surface) == EMPTY_SNAPSHOT
    assert store.time_series(surface) is None
    assert store.changes(surface, after=0) == []
    assert store.pending_impressions(surface, since_ms=0, until_ms=10_000) == []
    assert store.outcome(surface, shown(surface, 1).key) is None
    assert store.definition(surface, revision=1) is None


RETENTION_CHECKS = (
    check_snapshots_replace_changes,
    check_snapshots_are_written_once,
    check_pruned_changes_leave_a_gap,
    check_pruning_of_many_impressions,
    check_pruned_impressions_are_not_counted_again,
    check_deleted_surfaces_are_purged,
    check_large_surfaces_are_purged_in_steps,
)
