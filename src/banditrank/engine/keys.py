"""API keys: separate rights, kept only as hashes.

A key is long and random, so a plain hash of it cannot be reversed by guessing; nothing slow is needed.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.storage.base import Store
from banditrank.storage.records import KeyRecord

Right: TypeAlias = Literal["rank", "read", "administer"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""rank: ask for rankings and tell feedback. read: see what was learned. administer: change surfaces."""

_PREFIX = "br"


def new_api_key(name: str, rights: Iterable[str]) -> tuple[str, KeyRecord]:
    """Return a key, and what a store is to keep of it: it is shown this once, and only its hash is kept.

    Examples
    --------
    >>> key, record = new_api_key("shop window", ["rank"])
    >>> rights_of(key, {record.id: record})
    ('rank',)
    """
    chosen = tuple(dict.fromkeys(rights))
    for right in chosen:
        if right not in RIGHTS:
            raise UnknownNameError("rights", right, RIGHTS)
    if not chosen:
        raise InvalidInputError("rights", f"must be some of {', '.join(RIGHTS)}", list(chosen))
    if not name.isprintable() or not 1 <= len(name) <= 100:
        raise InvalidInputError("name", "must be 1 to 100 printable characters", name)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    now = int(time.time() * 1000)
    return f"{_PREFIX}_{key_id}_{secret}", KeyRecord(key_id, name, chosen, _digest(secret), now)


def create_key(store: Store, name: str, rights: Iterable[str]) -> str:
    """Make a key in a store, and return it."""
    key, record = new_api_key(name, rights)
    store.add_key(record)
    return key


def rights_of(key: str, known: dict[str, KeyRecord]) -> tuple[str, ...]:
    """Return the rights of a key; none if it is unknown, wrong or revoked."""
    prefix, _, rest = key.partition("_")
    key_id, _, secret = rest.partition("_")
    record = known.get(key_id)
    if record is None or record.revoked is not None or prefix != _PREFIX:
        return ()
    return record.rights if hmac.compare_digest(_digest(secret), record.digest) else ()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
