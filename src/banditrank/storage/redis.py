"""A store of several machines that is kept in memory and on disk: Redis, from version 5 on."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from banditrank.errors import AlreadyExistsError, StoreError
from banditrank.storage import redis_scripts as scripts
from banditrank.storage.addresses import is_relaxed, without_options
from banditrank.storage.base import Store, WriteResult
from banditrank.storage.cells import cells_of
from banditrank.storage.records import (
    KEY_BYTES,
    EMPTY_SNAPSHOT,
    Change,
    Event,
    KeyRecord,
    Outcome,
    Impression,
    Snapshot,
    SurfaceRecord,
    Versions,
    min_key,
    is_storable,
)
from banditrank.storage.redis_server import RedisServer

_PORTION = 1000  # rankings that are forgotten at once: others wait no longer than that takes


class RedisStore(Store):
    """A store in a Redis server. What is where: `redis_scripts`.

    Parameters
    ----------
    address
        ``redis://:PASSWORD@HOST:PORT/NUMBER`` or ``rediss://…`` with whatever options redis-py knows, and two
        of ours: ``prefix``, with which all keys begin, `banditrank:` unless told; and ``durability=relaxed``,
        which accepts a server that may lose what it acknowledged.
    patience
        How many seconds an answer may take.
    """

    def __init__(self, address: str, *, patience: float = 5.0) -> None:
        for_driver, options = without_options(address, "prefix", "durability")
        self._server = RedisServer(
            for_driver,
            prefix=options.get("prefix", "banditrank:"),
            patience=patience,
            relaxed=is_relaxed(options),
        )
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def _migrate(self) -> None:
        """Bring the keys up to date, or refuse those of a newer version."""
        steps, where = scripts.MIGRATIONS, self._server.where
        known = len(steps)
        while (done := int(self._server.call("GET", "schema") or 0)) != known:
            if done > known:
                raise StoreError(f"{where} has schema {done}, this version knows {known}: upgrade banditrank")
            script = scripts.MIGRATE.replace("STEP", steps[done])
            self._server.run(script, ["schema", "secret"], [done, secrets.token_bytes(32)])

    # Surfaces

    def _run_on_surfaces(self, script: str, *values: Any) -> Any:
        keys = ["surfaces", "revisions", "versions", "numbers", "forgotten"]
        return self._server.run(script, keys, [self._server.prefix, *values])

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface."""
        number = self._run_on_surfaces(scripts.CREATE_SURFACE, name, definition, cells)
        if not number:
            raise AlreadyExistsError("surface", name)
        return SurfaceRecord(number, name, definition, 1)

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return a surface."""
        if not is_storable(name):
            return None
        return next(iter(self._find(name)), None)

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        return sorted(self._find(), key=lambda record: record.name)

    def _find(self, *names: str) -> list[SurfaceRecord]:
        return [
            SurfaceRecord(int(number), name.decode(), definition.decode(), int(revision))
            for number, name, definition, revision in self._run_on_surfaces(scripts.FIND_SURFACES, *names)
        ]

    def update_surface(self, before: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition."""
        known = before.name, definition, before.revision, before.number
        if not self._run_on_surfaces(scripts.UPDATE_SURFACE, *known):
            return None
        return replace(before, definition=definition, revision=before.revision + 1)

    def definition(self, surface: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        found: bytes | None = self._server.call("HGET", f"{surface}:definitions", revision)
        return None if found is None else found.decode()

    def delete_surface(self, name: str) -> bool:
        """Delete a surface."""
        return is_storable(name) and bool(self._run_on_surfaces(scripts.DELETE_SURFACE, name))

    # Learning

    def _write(self, events: Sequence[Event], at: int) -> WriteResult:
        surfaces = sorted({event.shown.surface for event in events})
        places = {surface: place for place, surface in enumerate(surfaces, start=1)}
        new = [event.outcome is not None for event in events]  # as it nearly always is
        written = 0
        while not written:  # wrong again only if somebody else wrote in between
            group_by_surface: dict[int, list[Event]] = {surface: [] for surface in surfaces}
            parts: list[bytes] = []
            for event, is_new in zip(events, new, strict=True):
                (surface, key, ranking), outcome = event
                if is_new:
                    group_by_surface[surface].append(event)
                code = b"" if outcome is None else b"%d" % outcome.code
                head = scripts.ENTRY.pack(places[surface], is_new, len(key), len(code), len(ranking))
                parts += (head, key, code, ranking)
            added = {surface: cells_of(group_by_surface[surface]) for surface in surfaces}
            values = [part for surface in surfaces for part in (surface, added[surface])]
            keys = [f"{surface}:{name}" for surface in surfaces for name in ("open", "settled", "changes")]
            written, found, versions = self._server.run(
                scripts.WRITE, ["versions", *keys, "forgotten"], [len(surfaces), *values, b"".join(parts), at]
            )
            states = found.split(b" ")
            new = [state == b"new" for state in states]
        changes = [
            Change(surface, version, added[surface], at)
            for surface, version in zip(surfaces, versions, strict=True)
            if version
        ]
        told = list(zip(events, states, strict=True))
        before = {
            event.shown.place: Outcome.from_code(int(state))
            for event, state in told
            if event.outcome is not None and state.isdigit()
        }
        gone = {event.shown.surface for event, state in told if state == b"gone"}
        return WriteResult(
            changes, before, gone, {event.shown.place for event, state in told if state == b"forgotten"}
        )

    def outcome(self, surface: int, key: bytes) -> Outcome | None:
        """Return what became of a ranking."""
        found = self._server.call("ZRANGEBYLEX", f"{surface}:settled", b"[" + key, b"(" + key + b":")
        return Outcome.from_code(int(found[0][len(key) :])) if found else None

    def versions(self) -> dict[int, Versions]:
        """Return how far each surface is."""
        listed = self._server.run(scripts.VERSIONS, ["revisions", "versions"])
        revisions, versions = (dict(zip(one[::2], one[1::2], strict=True)) for one in listed)
        return {int(number): Versions(int(revisions[number]), int(versions[number])) for number in versions}

    def changes(self, surface: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return changes after a version."""
        found = self._server.call("XRANGE", f"{surface}:changes", f"{after + 1}-0", "+", "COUNT", limit)
        return [
            Change(surface, int(place.split(b"-")[0]), fields[b"cells"], int(fields.get(b"at", 0)))
            for place, fields in found
        ]

    def snapshot(self, surface: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot that is not after a version."""
        keys = [f"{surface}:{name}" for name in ("snapshots", "sums", "histories")]
        found = self._server.run(scripts.SNAPSHOT, keys, ["+inf" if up_to is None else up_to])
        return Snapshot(int(found[0]), found[1], int(found[2]), found[3] or b"") if found else EMPTY_SNAPSHOT

    def save_snapshot(self, surface: int, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        keys = ["versions", *(f"{surface}:{name}" for name in ("snapshots", "sums", "histories"))]
        self._server.run(scripts.SAVE_SNAPSHOT, keys, [surface, *snapshot])

    def pending_impressions(self, surface: int, *, since: int, until: int, limit: int = 1000) -> list[Event]:
        """Return rankings without an outcome that lapse within a time."""
        first, last = b"[" + min_key(since), b"(" + min_key(until)
        found = self._server.call("ZRANGEBYLEX", f"{surface}:open", first, last, "LIMIT", 0, limit)
        return [Event(Impression(surface, one[:KEY_BYTES], one[KEY_BYTES:]), None) for one in found]

    def prune(self, surface: int, *, before: int) -> None:
        """Throw away what is old."""
        names = ("settled", "changes", "snapshots", "sums", "histories")
        keys = ["versions", *(f"{surface}:{name}" for name in names), f"{surface}:open", "forgotten"]
        while self._server.run(scripts.FORGET, keys, [surface, before, min_key(before), _PORTION]):
            pass

    # Secrets and keys

    def secret(self) -> bytes:
        """Return random bytes."""
        return bytes(self._server.call("GET", "secret"))

    def add_key(self, key: KeyRecord) -> None:
        """Keep an API key."""
        value = [key.name, key.rights, key.digest.hex(), key.created, key.expires_at_ms, key.surfaces]
        self._server.call("HSETNX", "keys", key.id, json.dumps(value))
        if key.revoked is not None:
            self.revoke_key(key.id, at=key.revoked)

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        kept, revoked = self._server.call("HGETALL", "keys"), self._server.call("HGETALL", "revoked")
        keys = []
        for key_id, value in kept.items():
            name, rights, digest, created, *later = json.loads(value)
            expires_at_ms, surfaces = later or (None, ())  # which schema 1 did not have
            keys.append(
                KeyRecord(
                    key_id.decode(),
                    name,
                    tuple(rights),
                    bytes.fromhex(digest),
                    created,
                    int(revoked[key_id]) if key_id in revoked else None,
                    expires_at_ms,
                    tuple(surfaces),
                )
            )
        return sorted(keys, key=lambda key: (key.created, key.id))

    def revoke_key(self, key_id: str, *, at: int) -> bool:
        """Revoke a key."""
        return is_storable(key_id) and bool(
            self._server.run(scripts.REVOKE_KEY, ["keys", "revoked"], [key_id, at])
        )

    # The store itself

    def check(self) -> None:
        """Set a key that is never read to a new value."""
        self._server.call("SET", "check", secrets.token_hex(8))

    def close(self) -> None:
        """Close all connections."""
        self._server.close()
