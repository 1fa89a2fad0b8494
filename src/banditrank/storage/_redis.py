"""The Redis store, which several machines can share; needs Redis 5 or later."""

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from banditrank.errors import (
    AlreadyExistsError,
    InvalidInputError,
    StoreError,
    StoreUnavailableError,
    one_line,
)
from banditrank.storage import _redis_scripts as scripts
from banditrank.storage._addresses import is_relaxed, redacted, split_options
from banditrank.storage._base import Store, WriteResult
from banditrank.storage._cells import encode_cells
from banditrank.storage._records import (
    EMPTY_SNAPSHOT,
    KEY_BYTES,
    Change,
    Event,
    Impression,
    KeyRecord,
    Outcome,
    SavedTimeSeries,
    Snapshot,
    SurfaceRecord,
    Versions,
    is_storable,
    min_key,
)

_MAX_CONNECTIONS = 16
_MAX_PRUNED = 1000  # impressions per script: limits the time that other clients wait
_DURABLE_SETTINGS = {  # reply only when the disk has it, and never evict
    "appendonly": ("yes",),
    "appendfsync": ("always",),
    "no-appendfsync-on-rewrite": ("no",),
    "maxmemory-policy": ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"),
}
_TRANSIENT_ERRORS = (  # a retry may succeed, at the latest after an operator intervened
    redis.ConnectionError,
    redis.TimeoutError,
    redis.OutOfMemoryError,
    redis.ReadOnlyError,
)
_TRANSIENT_CODES = ("BUSY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY")


class RedisStore(Store):
    """A store in a Redis server. `_redis_scripts` documents its keys.

    Parameters
    ----------
    address
        ``redis://:PASSWORD@HOST:PORT/NUMBER`` or ``rediss://…``, with the options of redis-py and two more:
        ``prefix`` of all keys, by default `banditrank:`, and ``durability=relaxed``, which accepts a server
        that may lose acknowledged feedback.
    timeout_seconds
        Time limit of a reply.

    Raises
    ------
    InvalidInputError
        If the address is malformed.
    StoreUnavailableError
        If the server cannot be reached.
    StoreError
        If the keys are from a newer version, or the server is not durable.
    """

    def __init__(self, address: str, *, timeout_seconds: float = 5.0) -> None:
        driver_address, options = split_options(address, "prefix", "durability")
        self._prefix = options.get("prefix", "banditrank:")
        is_durability_checked = not is_relaxed(options)
        try:
            pool = redis.BlockingConnectionPool.from_url(
                driver_address,
                max_connections=_MAX_CONNECTIONS,
                timeout=timeout_seconds,
                socket_timeout=timeout_seconds,
                socket_connect_timeout=timeout_seconds,
                retry=Retry(NoBackoff(), 0),  # the driver does not know which calls are safe to repeat
                redis_connect_func=self._on_connect if is_durability_checked else None,
            )
            pool.connection_class(
                **pool.connection_kwargs
            )  # raises if an option is unknown; does not connect
        except (ValueError, TypeError):  # their message may quote the address
            rule = "must be an address that redis-py can read"
            raise InvalidInputError("store", rule, redacted(address)) from None
        self._client: Any = redis.Redis.from_pool(pool)  # its types do not have the results of commands
        self._location = f"Redis at {pool.connection_kwargs.get('host', 'localhost')}"
        self._scripts: dict[str, Any] = {}
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    # Connections and schema

    def _on_connect(self, connection: Any) -> None:
        """Initialize a connection and check the server, which may have changed since the last connection."""
        try:
            connection.on_connect()
            self._check_durability(connection)
        except BaseException:
            connection.disconnect()  # else the driver would use it again
            raise

    def _check_durability(self, connection: Any) -> None:
        """Raise `StoreError` if the server may lose acknowledged feedback."""
        for name, durable in _DURABLE_SETTINGS.items():
            value = self._setting(connection, name)
            if value not in durable:
                raise StoreError(
                    f"{self._location} has {name} {value}, which can lose acknowledged feedback: "
                    f"set it to {durable[0]}, or accept the loss with ?durability=relaxed"
                )

    def _setting(self, connection: Any, name: str) -> str:
        try:
            with self._translate_errors():
                connection.send_command("CONFIG", "GET", name)
                found = connection.read_response()
        except StoreUnavailableError:
            raise
        except StoreError as error:
            advice = f"allow CONFIG GET, which checks {name}, or skip the check with ?durability=relaxed"
            raise StoreError(f"{error}: {advice}") from error
        values = list(found.values()) if isinstance(found, dict) else found[1::2]  # dict: protocol version 3
        return str(values[0], "utf-8") if values else "unknown"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            message = one_line(error)
            is_transient = isinstance(error, _TRANSIENT_ERRORS) or message.startswith(_TRANSIENT_CODES)
            kind = StoreUnavailableError if is_transient else StoreError
            raise kind(f"{self._location}: {message}") from error

    def _call(self, command: str, key: str, *values: Any) -> Any:
        """Run a command on a key."""
        with self._translate_errors():
            return self._client.execute_command(command, self._prefix + key, *values)

    def _run(self, script: str, keys: Sequence[str], values: Sequence[Any] = ()) -> Any:
        """Run a Lua script on keys; the driver sends its text only if the server does not have it."""
        if script not in self._scripts:
            self._scripts[script] = self._client.register_script(script)
        with self._translate_errors():
            return self._scripts[script](keys=[self._prefix + key for key in keys], args=list(values))

    def _migrate(self) -> None:
        """Apply missing migrations, or raise if the schema is newer than this version."""
        known = len(scripts.MIGRATIONS)
        while (version := int(self._call("GET", "schema") or 0)) != known:
            if version > known:
                raise StoreError(
                    f"{self._location} has schema {version}, this version knows {known}: upgrade banditrank"
                )
            script = scripts.MIGRATE.replace("STEP", scripts.MIGRATIONS[version])
            self._run(script, ["schema", "secret"], [version, secrets.token_bytes(32), self._prefix])

    # Surfaces

    def _run_on_surfaces(self, script: str, *values: Any) -> Any:
        keys = ["surfaces", "revisions", "versions", "numbers", "forgotten"]
        return self._run(script, keys, [self._prefix, *values])

    def create_surface(self, name: str, definition: str, *, cells: bytes = b"") -> SurfaceRecord:
        """Create a surface and return its record."""
        surface_id = self._run_on_surfaces(scripts.CREATE_SURFACE, name, definition, cells)
        if not surface_id:
            raise AlreadyExistsError("surface", name)
        return SurfaceRecord(surface_id, name, definition, 1)

    def find_surface(self, name: str) -> SurfaceRecord | None:
        """Return the surface with a name."""
        if not is_storable(name):
            return None
        return next(iter(self._find_surfaces(name)), None)

    def surfaces(self) -> list[SurfaceRecord]:
        """Return all surfaces."""
        return sorted(self._find_surfaces(), key=lambda record: record.name)

    def _find_surfaces(self, *names: str) -> list[SurfaceRecord]:
        return [
            SurfaceRecord(int(surface_id), name.decode(), definition.decode(), int(revision))
            for surface_id, name, definition, revision in self._run_on_surfaces(scripts.FIND_SURFACES, *names)
        ]

    def update_surface(self, record: SurfaceRecord, definition: str) -> SurfaceRecord | None:
        """Replace the definition of a surface."""
        values = record.name, definition, record.revision, record.surface_id
        if not self._run_on_surfaces(scripts.UPDATE_SURFACE, *values):
            return None
        return replace(record, definition=definition, revision=record.revision + 1)

    def definition(self, surface_id: int, *, revision: int) -> str | None:
        """Return the definition at a revision."""
        found: bytes | None = self._call("HGET", f"{surface_id}:definitions", revision)
        return None if found is None else found.decode()

    def delete_surface(self, name: str) -> bool:
        """Delete a surface with its data."""
        return is_storable(name) and bool(self._run_on_surfaces(scripts.DELETE_SURFACE, name))

    # Learning

    def _write(self, events: Sequence[Event], at_ms: int) -> WriteResult:
        surface_ids = sorted({event.impression.surface_id for event in events})
        indices = {surface_id: index for index, surface_id in enumerate(surface_ids, start=1)}
        states = [b"-"] * len(events)  # nearly always right
        is_written = 0
        while not is_written:  # wrong a second time only if another process wrote in between
            groups: dict[int, list[Event]] = {surface_id: [] for surface_id in surface_ids}
            parts: list[bytes] = []
            for (impression, outcome), state in zip(events, states, strict=True):
                stored = _stored_outcome(state)
                new = None if state in _REJECTED or (stored and stored.is_final) else outcome
                if new is not None and stored is not None:
                    new = stored.merge(new)
                groups[impression.surface_id].append(Event(impression, new))
                assumed = b"" if stored is None or outcome is None else state
                code = b"" if new is None else new.code.encode()
                sizes = len(impression.key), len(assumed), len(code), len(impression.ranking)
                header = indices[impression.surface_id], outcome is not None, *sizes
                parts += (
                    scripts.EVENT_HEADER.pack(*header),
                    impression.key,
                    assumed,
                    code,
                    impression.ranking,
                )
            cells = {surface_id: encode_cells(group) for surface_id, group in groups.items()}
            keys = [
                f"{surface_id}:{name}"
                for surface_id in surface_ids
                for name in ("open", "settled", "changes")
            ]
            additions = [value for surface_id in surface_ids for value in (surface_id, cells[surface_id])]
            is_written, reply, versions = self._run(
                scripts.WRITE,
                ["versions", *keys, "forgotten"],
                [len(surface_ids), *additions, b"".join(parts), at_ms],
            )
            states = reply.split(b" ")
        changes = [
            Change(surface_id, version, cells[surface_id], at_ms)
            for surface_id, version in zip(surface_ids, versions, strict=True)
            if version
        ]
        existing, deleted_surfaces, pruned = {}, set(), set()
        for (impression, outcome), state in zip(events, states, strict=True):
            stored = _stored_outcome(state)
            if state == b"deleted":
                deleted_surfaces.add(impression.surface_id)
            elif state == b"pruned":
                pruned.add(impression.id)
            elif outcome is not None and stored is not None:
                existing[impression.id] = stored
        return WriteResult(changes, existing, deleted_surfaces, pruned)

    def outcome(self, surface_id: int, key: bytes) -> Outcome | None:
        """Return the outcome of an impression."""
        found = self._call("ZRANGEBYLEX", f"{surface_id}:settled", b"[" + key, b"(" + key + b":")
        return Outcome.from_code(found[0][len(key) :].decode()) if found else None

    def versions(self) -> dict[int, Versions]:
        """Return the current versions of each surface."""
        hashes = self._run(scripts.VERSIONS, ["revisions", "versions"])
        revisions, versions = (dict(zip(one[::2], one[1::2], strict=True)) for one in hashes)
        return {int(one): Versions(int(revisions[one]), int(versions[one])) for one in versions}

    def changes(self, surface_id: int, *, after: int, limit: int = 1000) -> list[Change]:
        """Return the first changes after a version."""
        found = self._call("XRANGE", f"{surface_id}:changes", f"{after + 1}-0", "+", "COUNT", limit)
        return [
            Change(surface_id, int(entry_id.split(b"-")[0]), fields[b"cells"], int(fields.get(b"at", 0)))
            for entry_id, fields in found
        ]

    def snapshot(self, surface_id: int, *, up_to: int | None = None) -> Snapshot:
        """Return the latest snapshot up to a version."""
        keys = [f"{surface_id}:snapshots", f"{surface_id}:sums"]
        found = self._run(scripts.SNAPSHOT, keys, ["+inf" if up_to is None else up_to])
        return Snapshot(int(found[0]), found[1], int(found[2])) if found else EMPTY_SNAPSHOT

    def save_snapshot(self, surface_id: int, snapshot: Snapshot) -> None:
        """Save a snapshot."""
        keys = ["versions", f"{surface_id}:snapshots", f"{surface_id}:sums"]
        self._run(scripts.SAVE_SNAPSHOT, keys, [surface_id, *snapshot])

    def pending_impressions(
        self, surface_id: int, *, since_ms: int, until_ms: int, limit: int = 1000
    ) -> list[Impression]:
        """Return the first impressions without a final outcome that expire within a time."""
        start, end = b"[" + min_key(since_ms), b"(" + min_key(until_ms)
        found = self._call("ZRANGEBYLEX", f"{surface_id}:open", start, end, "LIMIT", 0, limit)
        return [Impression(surface_id, member[:KEY_BYTES], member[KEY_BYTES:]) for member in found]

    def prune(self, surface_id: int, *, before_ms: int) -> None:
        """Remove what is older than a time."""
        names = ("settled", "changes", "snapshots", "sums", "open")
        keys = ["versions", *(f"{surface_id}:{name}" for name in names), "forgotten"]
        while self._run(scripts.PRUNE, keys, [surface_id, before_ms, min_key(before_ms), _MAX_PRUNED]):
            pass

    def time_series(self, surface_id: int) -> SavedTimeSeries | None:
        """Return the time series of a surface."""
        version, data = self._call("HMGET", f"{surface_id}:time_series", "version", "data")
        return None if version is None else SavedTimeSeries(int(version), data)

    def save_time_series(self, surface_id: int, series: SavedTimeSeries) -> None:
        """Save the time series of a surface if it is newer than the stored one."""
        self._run(scripts.SAVE_TIME_SERIES, ["versions", f"{surface_id}:time_series"], [surface_id, *series])

    # Secrets and keys

    def secret(self) -> bytes:
        """Return the random bytes of this store."""
        return bytes(self._call("GET", "secret"))

    def add_key(self, key: KeyRecord) -> None:
        """Add an API key."""
        times = key.created_at_ms, key.expires_at_ms
        value = [key.name, key.rights, key.digest.hex(), *times, key.surfaces]
        self._call("HSETNX", "keys", key.id, json.dumps(value))
        if key.revoked_at_ms is not None:
            self.revoke_key(key.id, revoked_at_ms=key.revoked_at_ms)

    def api_keys(self) -> list[KeyRecord]:
        """Return all API keys."""
        stored, revoked = self._call("HGETALL", "keys"), self._call("HGETALL", "revoked")
        keys = []
        for key_id, value in stored.items():
            name, rights, digest, created_at_ms, *later = json.loads(value)
            expires_at_ms, surfaces = later or (None, ())  # absent in schema 1
            keys.append(
                KeyRecord(
                    key_id.decode(),
                    name,
                    tuple(rights),
                    bytes.fromhex(digest),
                    created_at_ms,
                    int(revoked[key_id]) if key_id in revoked else None,
                    expires_at_ms,
                    tuple(surfaces),
                )
            )
        return sorted(keys, key=lambda key: (key.created_at_ms, key.id))

    def revoke_key(self, key_id: str, *, revoked_at_ms: int) -> bool:
        """Revoke an API key."""
        return is_storable(key_id) and bool(
            self._run(scripts.REVOKE_KEY, ["keys", "revoked"], [key_id, revoked_at_ms])
        )

    # Maintenance

    def check(self) -> None:
        """Set a key to a random value."""
        self._call("SET", "check", secrets.token_hex(8))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


_REJECTED = (b"deleted", b"pruned")


def _stored_outcome(state: bytes) -> Outcome | None:
    """Return the stored outcome, given the state of an event in the reply of a script."""
    return None if state in (b"-", *_REJECTED) else Outcome.from_code(state.decode())
