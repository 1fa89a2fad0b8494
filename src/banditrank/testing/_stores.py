"""Conformance suite for stores: every store must pass all `STORE_CHECKS`.

>>> from banditrank.storage._memory import MemoryStore
>>> for check in STORE_CHECKS:
...     store = MemoryStore()
...     check(lambda: store)
"""

from collections.abc import Callable
from dataclasses import replace

from banditrank.errors import AlreadyExistsError
from banditrank.storage._records import (
    EMPTY_SNAPSHOT,
    NOT_CLICKED,
    Event,
    KeyRecord,
    SavedTimeSeries,
    Snapshot,
    Versions,
)
from banditrank.testing._store_commits import COMMIT_CHECKS
from banditrank.testing._store_concurrency import CONCURRENCY_CHECKS
from banditrank.testing._store_events import CLICK, OpenStore, read_rounds, read_totals, shown
from banditrank.testing._store_retention import RETENTION_CHECKS


def check_surface_lifecycle(open_store: OpenStore) -> None:
    """Check that all processes see creations, updates and deletions, and surface ids are not reused."""
    store = open_store()
    first = store.create_surface("home", '{"a": "ä"}')
    other = store.create_surface("about", "{}")
    assert open_store().find_surface("home") == first
    assert [record.name for record in store.surfaces()] == ["about", "home"]
    changed = store.update_surface(first, "[]")
    assert changed is not None
    assert (changed.surface_id, changed.definition, changed.revision) == (first.surface_id, "[]", 2)
    assert open_store().find_surface("home") == changed
    assert open_store().definition(first.surface_id, revision=1) == first.definition
    assert store.definition(first.surface_id, revision=2) == "[]"
    assert store.definition(first.surface_id, revision=3) is None
    assert store.delete_surface("home")
    assert not store.delete_surface("home")
    assert open_store().find_surface("home") is None
    again = store.create_surface("home", "{}")
    assert again.surface_id not in (first.surface_id, other.surface_id)


def check_surface_with_initial_counts(open_store: OpenStore) -> None:
    """Check that initial counts of a surface are its first change, and versions continue from there."""
    store = open_store()
    source = store.create_surface("source", "{}").surface_id
    store.commit([Event(shown(source, 1), CLICK), Event(shown(source, 2), NOT_CLICKED)])
    cells = read_totals(store, source).cells()
    copy = store.create_surface("copy", "{}", cells=cells).surface_id
    assert open_store().versions()[copy] == Versions(1, 1)
    assert [(one.version, one.cells) for one in open_store().changes(copy, after=0)] == [(1, cells)]
    assert store.snapshot(copy) == EMPTY_SNAPSHOT
    assert store.commit([Event(shown(copy, 1), CLICK)]).changes[0].version == 2
    counts = read_totals(open_store(), copy).counts(range(4))
    assert (counts.rounds, counts.rewards.sum()) == (3, 2)
    try:
        store.create_surface("copy", "{}", cells=cells)
    except AlreadyExistsError:
        assert read_rounds(store, copy) == 3
    else:
        raise AssertionError("a name was given twice")


def check_duplicate_names_are_rejected(open_store: OpenStore) -> None:
    """Check that a second surface of the same name is rejected, and the first is unchanged."""
    store = open_store()
    first = store.create_surface("home", "{}")
    try:
        open_store().create_surface("home", "[]")
    except AlreadyExistsError:
        assert store.find_surface("home") == first
    else:
        raise AssertionError("a name was given twice")


def check_stale_updates_are_rejected(open_store: OpenStore) -> None:
    """Check that an update of an old revision or of a deleted surface is rejected."""
    store = open_store()
    record = store.create_surface("home", "{}")
    assert store.update_surface(record, "1") is not None
    assert open_store().update_surface(record, "2") is None
    found = store.find_surface("home")
    assert found is not None
    assert found.definition == "1"
    assert store.delete_surface("home")
    assert store.update_surface(found, "3") is None
    another = store.create_surface("home", "{}")
    assert store.update_surface(record, "4") is None, "it has the same name and revision, and is another"
    assert store.find_surface("home") == another


def check_api_keys_are_stored(open_store: OpenStore) -> None:
    """Check that API keys are stored in order of creation, and are revoked once."""
    store = open_store()
    one = KeyRecord("k1", "page", ("rank",), b"\x00\xff", 5)
    two = KeyRecord("k2", "ops", ("read", "administer"), b"\x01", 6)
    store.add_key(one)
    store.add_key(two)
    open_store().add_key(one)
    assert open_store().api_keys() == [one, two]
    assert store.revoke_key("k1", revoked_at_ms=9)
    assert not store.revoke_key("k1", revoked_at_ms=10)
    assert not store.revoke_key("k3", revoked_at_ms=10)
    assert [key.revoked_at_ms for key in open_store().api_keys()] == [9, None]


def check_key_expiry_and_surfaces_are_stored(open_store: OpenStore) -> None:
    """Check that expiry and surfaces of an API key are stored, also after it is revoked."""
    store = open_store()
    scoped = KeyRecord(
        "k1", "page", ("rank",), b"\x00", 5, expires_at_ms=(1 << 41) + 1, surfaces=("home", "a.b-c_d")
    )
    full = KeyRecord("k2", "ops", ("read",), b"\x01", 6)
    revoked = KeyRecord(
        "k3", "former", ("read",), b"\x02", 7, revoked_at_ms=8, expires_at_ms=9, surfaces=("ads",)
    )
    for key in (scoped, full, revoked):
        store.add_key(key)
    assert open_store().api_keys() == [scoped, full, revoked]
    assert store.revoke_key("k1", revoked_at_ms=10)
    assert open_store().api_keys()[0] == replace(scoped, revoked_at_ms=10)


def check_unstorable_names_are_not_found(open_store: OpenStore) -> None:
    """Check that a look-up by a string with NUL or a lone surrogate finds nothing and does not raise."""
    store = open_store()
    store.create_surface("home", "{}")
    store.add_key(KeyRecord("k1", "page", ("rank",), b"\x00", 5))
    for name in ("\0", "home\0", "\0home", "\ud800", "home\udfff", "", "ho me\n", "\uffff", "x" * 100_000):
        assert store.find_surface(name) is None
        assert not store.delete_surface(name)
        assert not store.revoke_key(name, revoked_at_ms=9)
    assert not store.revoke_key("k1\0", revoked_at_ms=9)
    assert [record.name for record in store.surfaces()] == ["home"]
    assert [key.revoked_at_ms for key in store.api_keys()] == [None]


def check_secret_is_shared(open_store: OpenStore) -> None:
    """Check that all processes that open a store read the same secret."""
    secret = open_store().secret()
    assert len(secret) == 32
    assert open_store().secret() == secret


def check_health_check_passes(open_store: OpenStore) -> None:
    """Check that the health check of a working store passes and changes nothing."""
    store = open_store()
    store.check()
    assert store.surfaces() == []


def check_time_series_is_stored(open_store: OpenStore) -> None:
    """Check that the time series of each surface is stored apart from the others' and from snapshots."""
    store = open_store()
    one, two = store.create_surface("one", "{}").surface_id, store.create_surface("two", "{}").surface_id
    series = SavedTimeSeries(3, bytes(range(256)) * 100)
    assert store.time_series(one) is None
    store.save_time_series(one, series)
    store.save_snapshot(one, Snapshot(5, b"", 10))
    store.prune(one, before_ms=20)
    assert open_store().time_series(one) == series
    assert open_store().time_series(two) is None
    store.save_time_series(99, series)
    assert store.time_series(99) is None, "a surface that does not exist has a time series"
    assert store.snapshot(two) == EMPTY_SNAPSHOT


def check_only_a_newer_time_series_replaces(open_store: OpenStore) -> None:
    """Check that a time series replaces the stored one only if its version is later."""
    store = open_store()
    surface = store.create_surface("home", "{}").surface_id
    store.save_time_series(surface, SavedTimeSeries(9, b"first"))
    for version in (9, 8):
        open_store().save_time_series(surface, SavedTimeSeries(version, b"not newer"))
        assert store.time_series(surface) == SavedTimeSeries(9, b"first")
    open_store().save_time_series(surface, SavedTimeSeries(10, b"newer"))
    assert store.time_series(surface) == SavedTimeSeries(10, b"newer")


STORE_CHECKS: tuple[Callable[[OpenStore], None], ...] = (
    check_surface_lifecycle,
    check_surface_with_initial_counts,
    check_duplicate_names_are_rejected,
    check_stale_updates_are_rejected,
    check_api_keys_are_stored,
    check_key_expiry_and_surfaces_are_stored,
    check_unstorable_names_are_not_found,
    check_secret_is_shared,
    check_health_check_passes,
    check_time_series_is_stored,
    check_only_a_newer_time_series_replaces,
    *COMMIT_CHECKS,
    *RETENTION_CHECKS,
    *CONCURRENCY_CHECKS,
)
"""Checks that every store must pass; each takes a function that opens a new, empty store."""
