"""Stores by address."""

from urllib.parse import urlsplit

from banditrank.errors import InvalidInputError
from banditrank.storage.base import Store

DEFAULT_STORE = "sqlite:banditrank.db"
_EXAMPLES = "sqlite:FILE, postgresql://…, redis://… or memory:"


def open_store(address: str) -> Store:
    """Open a store.

    Parameters
    ----------
    address
        ``sqlite:FILE``, ``postgresql://USER@HOST/DATABASE``, ``redis://HOST/NUMBER`` or ``memory:``.

    Examples
    --------
    >>> open_store("memory:").surfaces()
    []
    >>> open_store("mysql://host/base")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: store must be sqlite:FILE, postgresql://…, redis://… or memory:,
        got 'mysql://host/base'
    """
    scheme = urlsplit(address).scheme
    if scheme == "memory":
        from banditrank.storage.memory import MemoryStore  # noqa: PLC0415 - only what is used

        return MemoryStore()
    if scheme == "sqlite":
        from banditrank.storage.sqlite import SqliteStore  # noqa: PLC0415

        path = address.removeprefix("sqlite:").removeprefix("//")
        if not path:
            raise InvalidInputError("store", "must name a file after sqlite:", address)
        return SqliteStore(path)
    raise InvalidInputError("store", f"must be {_EXAMPLES}", address)
