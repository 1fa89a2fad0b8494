"""The memory store: for tests and trials, it ends with its process."""

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from banditrank.errors import AlreadyExistsError
from banditrank.storage._base import Store, WriteResult
from banditrank.storage._cells import encode_cells
from banditrank.storage._records import (
    EMPTY_SNAPSHOT,
    Change,
    Event,
    Impression,
    ImpressionId,
    KeyRecord,
    Outcome,
    SavedTimeSeries,
    Snapshot,
    SurfaceRecord,
    Versions,
    group_by_surface,
    min_key,
)


@dataclass
class _SurfaceState:
    """Data of one surface."""

    definitions: list[str]
    pending: dict[bytes, Impression] = field(default_factory=dict)  # without a final outcome
    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=lambda: [EMPTY_SNAPSHOT])
    time_series: SavedTimeSeries | None = None
    pruned_before_ms: int = 0

    @property
    def version(self) -> int:
        return self.changes[-1].version if self.changes else 0  # the latest change is never pruned

    def apply(self, event: Event) -> None:
        """Store an event of an impression that has no final outcome yet."""
        key = event.impression.key
        if event.outcome is not None:
            self.outcomes[key] = event.outcome
        if event.outcome is not None and event.outcome.is_final:
            self.pending.pop(key, None)
        else:
            self.pending[key] = event.impression


class MemoryStore(Store):
    """A store in dictionaries of one process.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.create_surface("home", "{}").revision
    1
    >>> store.snapshot(1).version
    0
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._surface_ids = count(1)
        self._surfaces: dict[str, SurfaceRecord] = {}
        self._states: dict[int, _SurfaceState] = {}
        self._secret = secrets.token_bytes(32)
        self._keys: dict[str, KeyRecord] = {}

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface and return its record."""
        with self._lock:
            if name in self._surfaces:
                raise AlreadyExistsError("surface", name)
            record = SurfaceRecord(next(self._surface_ids), name, definition, 1)
            self._surfaces[name] = record
            changes = [Change(record.surface_id, 1, cells, 0)] if cells else []
            self._states[record.surface_id] = _SurfaceState([definition], changes=changes)
            return record

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return the surface with a name."""
        with self._lock:
            return self._surfaces.get(name)

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        with self._lock:
            return [self._surfaces[name] for name in sorted(self._surfaces)]

    def update_surface(self, record: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition of a surface."""
        with self._lock:
            current = self._surfaces.get(record.name)
            expected = record.surface_id, record.revision
            if current is None or (current.surface_id, current.revision) != expected:
                return None
            updated = replace(current, definition=definition, revision=current.revision + 1)
            self._surfaces[current.name] = updated
            self._states[current.surface_id].definitions.append(definition)
            return updated

    def definition(self, surface_id: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        with self._lock:
            definitions = self._states[surface_id].definitions if surface_id in self._states else []
            return definitions[revision - 1] if 1 <= revision <= len(definitions) else None

    def delete_surface(self, name: str) -> bool:
        """Delete a surface with its data."""
        with self._lock:
            record = self._surfaces.pop(name, None)
            if record is None:
                return False
            del self._states[record.surface_id]
            return True

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        with self._lock:
            deleted_surfaces = {event.impression.surface_id for event in events} - self._states.keys()
            existing: dict[ImpressionId, Outcome] = {}
            pruned: set[ImpressionId] = set()
            new: list[Event] = []
            for event in events:
                impression = event.impression
                if impression.surface_id in deleted_surfaces:
                    continue
                state = self._states[impression.surface_id]
                outcome = state.outcomes.get(impression.key)
                if impression.expires_at_ms < state.pruned_before_ms:
                    pruned.add(impression.id)
                elif outcome is None:
                    new.append(event)
                elif event.outcome is not None:
                    existing[impression.id] = outcome
                    if not outcome.is_final:
                        new.append(Event(impression, outcome.merge(event.outcome)))
            changes = [
                Change(surface_id, self._states[surface_id].version + 1, cells, at_ms)
                for surface_id, group in group_by_surface(new).items()
                if (cells := encode_cells(group))
            ]
            # Nothing below can fail, so that a group is written as a whole or not at all.
            for event in new:
                self._states[event.impression.surface_id].apply(event)
            for change in changes:
                self._states[change.surface_id].changes.append(change)
            return WriteResult(changes, existing, deleted_surfaces, pruned)

    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        """Return the outcome of an impression."""
        with self._lock:
            state = self._states.get(surface_id)
            return None if state is None else state.outcomes.get(key)

    def versions(self) -> dict[int, Versions]:
        """Return the current versions of each surface."""
        with self._lock:
            return {
                record.surface_id: Versions(record.revision, self._states[record.surface_id].version)
                for record in self._surfaces.values()
            }

    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version."""
        with self._lock:
            changes = self._states[surface_id].changes if surface_id in self._states else []
            start = max(0, after + 1 - changes[0].version) if changes else 0
            return changes[start : start + limit]

    def snapshot(self, surface_id: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot up to a version."""
        with self._lock:
            snapshots = self._states[surface_id].snapshots if surface_id in self._states else []
            return next(
                (one for one in reversed(snapshots) if up_to is None or one.version <= up_to), EMPTY_SNAPSHOT
            )

    def save_snapshot(self, surface_id: int, snapshot: Snapshot) -> None:
        """Save a snapshot."""
        with self._lock:
            if state := self._states.get(surface_id):
                by_version = {one.version: one for one in (snapshot, *state.snapshots)}
                state.snapshots = [by_version[version] for version in sorted(by_version)]

    def pending_impressions(
        self, surface_id: int, *, since_ms: int, until_ms: int, limit: int = 1000
    ) -> list[Impression]:
        """Return the first impressions without an outcome that expire within a time."""
        with self._lock:
            pending = self._states[surface_id].pending if surface_id in self._states else {}
            start, end = min_key(since_ms), min_key(until_ms)
            keys = sorted(key for key in pending if start <= key < end)
            return [pending[key] for key in keys[:limit]]

    def prune(self, surface_id: int, *, before_ms: int) -> None:
        """Remove what is older than a time."""
        end = min_key(before_ms)
        with self._lock:
            if state := self._states.get(surface_id):
                state.pruned_before_ms = max(state.pruned_before_ms, before_ms)
                state.pending = {key: one for key, one in state.pending.items() if key >= end}
                state.outcomes = {key: one for key, one in state.outcomes.items() if key >= end}
                old = [one.version for one in state.snapshots if one.saved_at_ms < before_ms]
                version = max(old, default=0)
                latest = state.changes[-1:]
                state.changes = [one for one in state.changes if one.version > version] or latest
                state.snapshots = [one for one in state.snapshots if one.version >= version]

    def time_series(self, surface_id: int) -> SavedTimeSeries | None:
        """Return the time series of a surface."""
        with self._lock:
            state = self._states.get(surface_id)
            return None if state is None else state.time_series

    def save_time_series(self, surface_id: int, series: SavedTimeSeries) -> None:
        """Save the time series of a surface if it is newer than the stored one."""
        with self._lock:
            state = self._states.get(surface_id)
            if state and (state.time_series is None or state.time_series.version < series.version):
                state.time_series = series

    def secret(self) -> bytes:
        """Return the random bytes of this store."""
        return self._secret

    def add_key(self, key: KeyRecord) -> None:
        """Add an API key."""
        with self._lock:
            self._keys.setdefault(key.id, key)

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        with self._lock:
            return sorted(self._keys.values(), key=lambda key: (key.created_at_ms, key.id))

    def revoke_key(self, key_id: str, *, revoked_at_ms: int) -> bool:
        """Revoke an API key."""
        with self._lock:
            key = self._keys.get(key_id)
            if key is None or key.revoked_at_ms is not None:
                return False
            self._keys[key_id] = replace(key, revoked_at_ms=revoked_at_ms)
            return True

    def check(self) -> None:
        """Do nothing: memory accepts every write."""

    def close(self) -> None:
        """Do nothing: there are no connections."""
