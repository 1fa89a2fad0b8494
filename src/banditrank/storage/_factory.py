"""Opening stores by address."""

from banditrank._extras import requires
from banditrank.errors import InvalidInputError
from banditrank.storage._addresses import check_quoting, redacted, sqlite_file
from banditrank.storage._base import Store

DEFAULT_STORE = "sqlite:banditrank.db"
_FORMS = "sqlite:FILE, postgresql://…, redis://… or memory:"


def open_store(address: str) -> Store:
    """Open a store, and create it if it does not exist.

    Parameters
    ----------
    address
        ``sqlite:FILE``, ``postgresql://USER@HOST/DATABASE``, ``redis://HOST/NUMBER`` or ``memory:``.

    Raises
    ------
    InvalidInputError
        If the address is malformed.
    MissingDependencyError
        If its driver is not installed.
    StoreUnavailableError
        If the store cannot be reached.
    StoreError
        If it is not a store of this version, or not durable.

    Examples
    --------
    >>> open_store("memory:").surfaces()
    []
    >>> open_store("mysql://host/base")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: store must be sqlite:FILE, postgresql://…, redis://… or memory:,
        got 'mysql://…'
    """
    open_scheme = {
        "memory": _open_memory,
        "sqlite": _open_sqlite,
        "postgresql": _open_postgresql,
        "postgres": _open_postgresql,
        "redis": _open_redis,
        "rediss": _open_redis,
    }.get(address.partition(":")[0].lower())
    if open_scheme is None or ":" not in address:
        raise InvalidInputError("store", f"must be {_FORMS}", redacted(address))
    return open_scheme(address)


# Imported on use: most programs open one kind of store, and lack the drivers of the others.


def _open_memory(_: str) -> Store:
    from banditrank.storage._memory import MemoryStore  # noqa: PLC0415

    return MemoryStore()


def _open_sqlite(address: str) -> Store:
    from banditrank.storage._sqlite import SqliteStore  # noqa: PLC0415

    path = sqlite_file(address)
    if path is None or "\0" in address:
        raise InvalidInputError("store", "must name a file after sqlite:", address)
    return SqliteStore(path)


def _open_postgresql(address: str) -> Store:
    check_quoting(address)
    with requires("postgresql", "a PostgreSQL store"):
        from banditrank.storage._postgresql import PostgresStore  # noqa: PLC0415
    return PostgresStore(address)


def _open_redis(address: str) -> Store:
    check_quoting(address)
    with requires("redis", "a Redis store"):
        from banditrank.storage._redis import RedisStore  # noqa: PLC0415
    return RedisStore(address)
