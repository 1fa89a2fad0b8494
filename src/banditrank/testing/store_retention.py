"""Conformance checks of snapshots, pruning and purging."""

from functools import partial

from banditrank.storage.base import Store
from banditrank.storage.records import NOT_CLICKED, NOTHING, Entry, Snapshot, Verdict
from banditrank.testing.store_concurrency import run_in_threads
from banditrank.testing.store_events import CLICK, OpenStore, rounds_of, shown, totals_of


def check_snapshots_replace_changes(open_store: OpenStore) -> None:
    """Changes up to a snapshot can be pruned; versions continue."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    assert store.snapshot(surface) == NOTHING
    for number in range(4):
        store.commit([Entry(shown(surface, number, lapses=10 * number), CLICK)])
        if number in (0, 2):
            version = number + 1
            cells = totals_of(store, surface, up_to=version).cells()
            store.save_snapshot(surface, Snapshot(version, cells, saved=10 * number))
    assert store.snapshot(surface, up_to=2).version == 1
    store.forget(surface, before=25)
    assert [change.version for change in store.changes(surface, after=0)] == [4]
    assert open_store().snapshot(surface).version == 3
    assert store.snapshot(surface, up_to=2) == NOTHING
    assert rounds_of(store, surface) == 4
    assert store.commit([Entry(shown(surface, 9), CLICK)]).changes[0].version == 5
    later = store.commit([Entry(shown(surface, 3, lapses=30), CLICK)])
    assert later.verdicts == [Verdict.REPEATED], "an impression that expires later was pruned"
    earlier = store.commit([Entry(shown(surface, 1, lapses=10), CLICK)])
    assert earlier.verdicts == [Verdict.FORGOTTEN], "a pruned impression was counted twice"


def check_snapshots_are_written_once(open_store: OpenStore) -> None:
    """The first snapshot of a version stays; one of an older version may be saved later."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    store.save_snapshot(surface, Snapshot(5, b"five", 50, b"how it came"))
    store.save_snapshot(surface, Snapshot(5, b"five", 60))
    store.save_snapshot(surface, Snapshot(3, b"three", 70))
    assert open_store().snapshot(surface) == Snapshot(5, b"five", 50, b"how it came")
    assert store.snapshot(surface, up_to=4) == Snapshot(3, b"three", 70)
    assert store.snapshot(surface, up_to=2) == NOTHING


def check_pruned_changes_leave_a_gap(open_store: OpenStore) -> None:
    """Reading from a pruned version returns later changes, also if there were none since."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    for number in range(3):
        store.commit([Entry(shown(surface, number), CLICK)])
    store.save_snapshot(surface, Snapshot(3, totals_of(store, surface).cells(), 10))
    store.forget(surface, before=20)
    assert [change.version for change in open_store().changes(surface, after=1)] == [3]
    assert store.versions()[surface].version == 3
    assert rounds_of(store, surface) == 3
    store.forget(surface, before=20)
    assert store.commit([Entry(shown(surface, 4), CLICK)]).changes[0].version == 4


def check_pruning_of_many_impressions(open_store: OpenStore) -> None:
    """All old impressions are pruned, however many, and no others."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    entries = [
        Entry(shown(surface, number, lapses=1000 + number % 2), CLICK if number % 3 else None)
        for number in range(3400)
    ]
    store.commit(entries)
    store.forget(surface, before=1001)
    left = [entry for entry in entries if entry.shown.lapses > 1000]
    found = {entry.shown.key: store.outcome(surface, entry.shown.key) for entry in entries[::97]}
    expected = {entry.shown.key: entry.outcome if entry in left else None for entry in entries[::97]}
    assert found == expected
    still_open = store.open_entries(surface, since=0, until=2000, limit=5000)
    assert still_open == [entry for entry in left if entry.outcome is None]


def check_pruned_impressions_are_not_counted_again(open_store: OpenStore) -> None:
    """Feedback for a pruned impression does not count, whichever process commits it."""
    store, other = open_store(), open_store()
    surface = store.create_surface("home", "{}").number
    old, new = shown(surface, 1, lapses=1000), shown(surface, 2, lapses=3000)
    store.commit([Entry(old, CLICK)])
    other.forget(surface, before=2000)
    other.forget(surface, before=1500)
    told = store.commit([Entry(old, CLICK), Entry(new, CLICK), Entry(old, None), Entry(old, NOT_CLICKED)])
    assert told.verdicts == [Verdict.FORGOTTEN, Verdict.COUNTED, Verdict.NOTED, Verdict.FORGOTTEN]
    assert store.open_entries(surface, since=0, until=5000) == []
    assert rounds_of(other, surface) == 2


def check_deleted_surfaces_are_purged(open_store: OpenStore) -> None:
    """All data of a deleted surface are purged, also those that are written after the deletion."""
    store = open_store()
    surface = store.create_surface("home", "{}").number
    store.commit([Entry(shown(surface, 1), CLICK), Entry(shown(surface, 2), None)])
    store.save_snapshot(surface, Snapshot(1, b"", 10))
    other = open_store()
    assert store.delete_surface("home")
    late = other.commit([Entry(shown(surface, 3), CLICK), Entry(shown(surface, 2), None)])
    assert late == ([Verdict.GONE, Verdict.GONE], [])
    other.save_snapshot(surface, Snapshot(2, b"", 20))
    other.forget(surface, before=5)
    tidy_up(store)
    assert_nothing_is_left(other, surface)
    assert store.versions() == {}


def check_large_surfaces_are_purged_in_steps(open_store: OpenStore) -> None:
    """All data of a large deleted surface are purged by any process, and none of another surface."""
    store, other = open_store(), open_store()
    large, small = store.create_surface("large", "{}").number, store.create_surface("small", "{}").number
    kept = [Entry(shown(small, 1), CLICK), Entry(shown(small, 2), None)]
    store.commit([*(Entry(shown(large, number), CLICK) for number in range(2500)), *kept])
    for number in range(3000, 3010):
        store.commit([Entry(shown(large, number), None)])
    assert store.delete_surface("large")
    assert not other.delete_surface("large")
    again = other.create_surface("large", "{}").number
    open_store()  # does not wait for the purge
    tidy_up(store, other)
    assert_nothing_is_left(store, large)
    assert store.versions().keys() == {small, again}
    assert rounds_of(store, small) == 1
    assert store.open_entries(small, since=0, until=10_000) == kept[1:]
    assert store.definition(small, revision=1) == "{}"
    assert not other.tidy(), "nothing is left to purge"


def tidy_up(*stores: Store) -> None:
    """Purge all data of deleted surfaces, in several threads."""

    def tidy(store: Store) -> None:
        while store.tidy():
            pass

    run_in_threads(*(partial(tidy, store) for store in stores))


def assert_nothing_is_left(store: Store, surface: int) -> None:
    """Assert that no data of a surface are left."""
    assert store.snapshot(surface) == NOTHING
    assert store.changes(surface, after=0) == []
    assert store.open_entries(surface, since=0, until=10_000) == []
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
