"""The store of one process, for trials and tests: it is gone with the process."""

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from banditrank.errors import AlreadyExistsError
from banditrank.storage.base import Store, WriteResult
from banditrank.storage.cells import cells_of
from banditrank.storage.records import (
    EMPTY_SNAPSHOT,
    Change,
    Event,
    KeyRecord,
    Outcome,
    ImpressionId,
    Snapshot,
    SurfaceRecord,
    Versions,
    group_by_surface,
    min_key,
)


@dataclass
class _SurfaceState:
    """What is known of one surface."""

    definitions: list[str]
    open: dict[bytes, Event] = field(default_factory=dict)  # rankings without an outcome
    outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=lambda: [EMPTY_SNAPSHOT])
    forgotten: int = 0  # rankings that lapsed before this time, in milliseconds since 1970

    @property
    def version(self) -> int:
        return self.changes[-1].version if self.changes else 0  # the latest is never forgotten

    def take(self, event: Event) -> None:
        """Take in a ranking that has no outcome yet."""
        if event.outcome is None:
            self.open[event.shown.key] = event
        else:
            self.outcomes[event.shown.key] = event.outcome
            self.open.pop(event.shown.key, None)


class MemoryStore(Store):
    """Keeps everything in dictionaries.

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
        self._numbers = count(1)
        self._surfaces: dict[str, SurfaceRecord] = {}
        self._states: dict[int, _SurfaceState] = {}
        self._secret = secrets.token_bytes(32)
        self._keys: dict[str, KeyRecord] = {}

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface."""
        with self._lock:
            if name in self._surfaces:
                raise AlreadyExistsError("surface", name)
            record = SurfaceRecord(next(self._numbers), name, definition, 1)
            self._surfaces[name] = record
            changes = [Change(record.number, 1, cells, 0)] if cells else []
            self._states[record.number] = _SurfaceState([definition], changes=changes)
            return record

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface."""
        with self._lock:
            return self._surfaces.get(name)

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        with self._lock:
            return [self._surfaces[name] for name in sorted(self._surfaces)]

    def update_surface(self, before: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition."""
        with self._lock:
            now = self._surfaces.get(before.name)
            if now is None or (now.number, now.revision) != (before.number, before.revision):
                return None
            changed = replace(now, definition=definition, revision=now.revision + 1)
            self._surfaces[now.name] = changed
            self._states[now.number].definitions.append(definition)
            return changed

    def definition(self, surface: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        with self._lock:
            definitions = self._states[surface].definitions if surface in self._states else []
            return definitions[revision - 1] if 1 <= revision <= len(definitions) else None

    def delete_surface(self, name: str) -> bool:
        """Delete a surface."""
        with self._lock:
            record = self._surfaces.pop(name, None)
            if record is None:
                return False
            del self._states[record.number]
            return True

    def _write(self, events: Sequence[Event], at: int) -> WriteResult:
        with self._lock:
            gone = {event.shown.surface for event in events} - self._states.keys()
            before: dict[ImpressionId, Outcome] = {}
            forgotten: set[ImpressionId] = set()
            new: list[Event] = []
            for event in events:
                if event.shown.surface in gone:
                    continue
                state = self._states[event.shown.surface]
                known = state.outcomes.get(event.shown.key)
                if event.shown.expires_at_ms < state.forgotten:
                    forgotten.add(event.shown.place)
                elif known is None:
                    new.append(event)
                elif event.outcome is not None:
                    before[event.shown.place] = known
            changes = [
                Change(surface, self._states[surface].version + 1, cells, at)
                for surface, some in group_by_surface(new).items()
                if (cells := cells_of(some))
            ]
            # All that can fail was done above: a group is written as a whole or not at all.
            for event in new:
                self._states[event.shown.surface].take(event)
            for change in changes:
                self._states[change.surface].changes.append(change)
            return WriteResult(changes, before, gone, forgotten)

    def outcome(self, surface: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking."""
        with self._lock:
            state = self._states.get(surface)
            return None if state is None else state.outcomes.get(key)

    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is."""
        with self._lock:
            return {
                record.number: Versions(record.revision, self._states[record.number].version)
                for record in self._surfaces.values()
            }

    def changes(self, surface: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return changes after a version."""
        with self._lock:
            changes = self._states[surface].changes if surface in self._states else []
            start = max(0, after + 1 - changes[0].version) if changes else 0
            return changes[start : start + limit]

    def snapshot(self, surface: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot that is not after a version."""
        with self._lock:
            snapshots = self._states[surface].snapshots if surface in self._states else []
            return next(
                (one for one in reversed(snapshots) if up_to is None or one.version <= up_to), EMPTY_SNAPSHOT
            )

    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._lock:
            if state := self._states.get(surface):
                kept = {one.version: one for one in (snapshot, *state.snapshots)}
                state.snapshots = [kept[version] for version in sorted(kept)]

    def pending_impressions(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Event]:
        """Return rankings without an outcome that lapse within a time."""
        with self._lock:
            still_open = self._states[surface].open if surface in self._states else {}
            begin, end = min_key(since), min_key(until)
            found = sorted(key for key in still_open if begin <= key < end)
            return [still_open[key] for key in found[:limit]]

    def prune(self, surface: int, *, before: int) -> None:
        """Throw away what is old."""
        last = min_key(before)
        with self._lock:
            if state := self._states.get(surface):
                state.forgotten = max(state.forgotten, before)
                state.open = {key: event for key, event in state.open.items() if key >= last}
                state.outcomes = {key: one for key, one in state.outcomes.items() if key >= last}
                version = max((one.version for one in state.snapshots if one.saved < before), default=0)
                latest = state.changes[-1:]
                state.changes = [one for one in state.changes if one.version > version] or latest
                state.snapshots = [one for one in state.snapshots if one.version >= version]

    def secret(self) -> bytes:
        """Return random bytes."""
        return self._secret

    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key."""
        with self._lock:
            self._keys.setdefault(key.id, key)

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        with self._lock:
            return sorted(self._keys.values(), key=lambda key: (key.created, key.id))

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key."""
        with self._lock:
            key = self._keys.get(key_id)
            if key is None or key.revoked is not None:
                return False
            self._keys[key_id] = replace(key, revoked=at)
            return True

    def check(self) -> None:
        """Memory can always be written to."""

    def close(self) -> None:
        """Do nothing: there are no connections."""
