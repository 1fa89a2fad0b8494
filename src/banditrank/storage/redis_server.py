"""Talking to a Redis server: time limits, errors, and whether what it acknowledges can be lost."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from banditrank.errors import InvalidInputError, StoreError, StoreUnavailableError
from banditrank.storage.addresses import redacted

_MOST_CONNECTIONS = 16
_SAFE = {  # what the server must be set to: it answers only after the disk has it, and throws nothing away
    "appendonly": ("yes",),
    "appendfsync": ("always",),
    "no-appendfsync-on-rewrite": ("no",),
    "maxmemory-policy": ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"),
}
_ADVICE = "or accept with ?durability=relaxed that acknowledged feedback can be lost"
_PASSING = (  # what may be over when it is tried again, or after somebody mended it
    redis.ConnectionError,
    redis.TimeoutError,
    redis.OutOfMemoryError,
    redis.ReadOnlyError,
)
_PASSING_CODES = ("BUSY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY")


class RedisServer:
    """A server, and the prefix of all keys there.

    Parameters
    ----------
    address
        What redis-py takes.
    prefix
        What all keys begin with.
    patience
        How many seconds an answer may take.
    relaxed
        Whether a server is accepted that may lose what it acknowledged.
    """

    def __init__(self, address: str, *, prefix: str, patience: float, relaxed: bool) -> None:
        self.prefix = prefix
        try:
            pool = redis.BlockingConnectionPool.from_url(
                address,
                max_connections=_MOST_CONNECTIONS,
                timeout=patience,
                socket_timeout=patience,
                socket_connect_timeout=patience,
                # Whoever repeats a call knows what it means to do so; the driver does not.
                retry=Retry(NoBackoff(), 0),
                redis_connect_func=None if relaxed else self._begin,
            )
            pool.connection_class(**pool.connection_kwargs)  # not connected: are all options known?
        except (ValueError, TypeError):  # whose message may quote from the address
            rule = "must be an address that redis-py can read"
            raise InvalidInputError("store", rule, redacted(address)) from None
        self._client: Any = redis.Redis.from_pool(pool)  # whose types do not know what commands return
        self.where = f"Redis at {pool.connection_kwargs.get('host', 'this machine')}"
        self._scripts: dict[str, Any] = {}

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            message = " ".join(str(error).split())
            passing = isinstance(error, _PASSING) or message.startswith(_PASSING_CODES)
            kind = StoreUnavailableError if passing else StoreError
            raise kind(f"{self.where}: {message}") from error

    def call(self, command: str, key: str, *values: Any) -> Any:
        """Run a command on a key."""
        with self._telling():
            return self._client.execute_command(command, self.prefix + key, *values)

    def run(self, script: str, keys: Sequence[str], values: Sequence[Any] = ()) -> Any:
        """Run a script in Lua on keys: all of it, or nothing. The server is sent it once."""
        if script not in self._scripts:
            self._scripts[script] = self._client.register_script(script)
        with self._telling():
            return self._scripts[script](keys=[self.prefix + key for key in keys], args=list(values))

    def _begin(self, connection: Any) -> None:
        """Do what the driver does when it is connected, and check the server.

        With every connection: it may be another server than before, or have started with other settings.
        """
        try:
            connection.on_connect()
            self._check_durability(connection)
        except BaseException:
            connection.disconnect()  # or else the driver would use it, the next time
            raise

    def _check_durability(self, connection: Any) -> None:
        """Refuse a server that may lose what it acknowledged."""
        for name, safe in _SAFE.items():
            value = self._setting(connection, name)
            if value not in safe:
                raise StoreError(f"{self.where} has {name} {value}: set it to {safe[0]}, {_ADVICE}")

    def _setting(self, connection: Any, name: str) -> str:
        try:
            with self._telling():
                connection.send_command("CONFIG", "GET", name)
                found = connection.read_response()
        except StoreUnavailableError:
            raise
        except StoreError as error:  # forbidden
            raise StoreError(f"{error}: allow CONFIG GET, by which {name} is checked, {_ADVICE}") from error
        values = list(found.values()) if isinstance(found, dict) else found[1::2]  # by the protocol's version
        return str(values[0], "utf-8") if values else "unknown"

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
