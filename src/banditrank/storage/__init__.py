"""Stores of surfaces, impressions, counts and API keys."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.storage._base import Store
    from banditrank.storage._factory import open_store
    from banditrank.storage._memory import MemoryStore
    from banditrank.storage._postgresql import PostgresStore
    from banditrank.storage._redis import RedisStore
    from banditrank.storage._sqlite import SqliteStore

__all__ = [
    "MemoryStore",
    "PostgresStore",
    "RedisStore",
    "SqliteStore",
    "Store",
    "open_store",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_base": ("Store",),
            "_factory": ("open_store",),
            "_memory": ("MemoryStore",),
            "_postgresql": ("PostgresStore",),
            "_redis": ("RedisStore",),
            "_sqlite": ("SqliteStore",),
        },
    )
