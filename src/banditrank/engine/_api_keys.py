"""API keys with rights, an optional expiry and an optional scope; stores keep only their hashes.

A key is long and random, so a plain hash of it cannot be reversed by guessing; nothing slow is needed.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args

from banditrank.engine._surface_name import SURFACE_NAME
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.storage._base import Store
from banditrank.storage._records import KeyRecord

Right: TypeAlias = Literal["rank", "read", "administer"]
RIGHTS: tuple[Right, ...] = get_args(Right)
"""rank: request rankings and send feedback. read: read reports. administer: create and update surfaces."""

MAX_SURFACES_PER_KEY = 100
MAX_EXPIRES_AT_MS = 253_402_300_799_999  # the last moment of the year 9999, the last year of a `datetime`

_PREFIX = "br"


def new_api_key(
    name: str,
    rights: Iterable[str],
    *,
    expires_at_ms: int | None = None,
    surfaces: Iterable[str] = (),
) -> tuple[str, KeyRecord]:
    """Return a new key and the record of it that a store keeps.

    Parameters
    ----------
    name
        What the key is for: 1 to 100 printable characters.
    rights
        Some of `RIGHTS`.
    expires_at_ms
        Time from which the key is invalid, in milliseconds since 1970; None for never.
    surfaces
        Names of the only surfaces that the key may access; none for all surfaces.

    Raises
    ------
    InvalidInputError
        If one of the values breaks its rule.

    Examples
    --------
    >>> key, record = new_api_key("shop window", ["rank"], surfaces=["home"])
    >>> verify_key(key, {record.id: record}) is record
    True
    """
    chosen = tuple(dict.fromkeys(rights))
    for right in chosen:
        if right not in RIGHTS:
            raise UnknownNameError("rights", right, RIGHTS)
    if not chosen:
        raise InvalidInputError("rights", f"must be some of {', '.join(RIGHTS)}", list(chosen))
    if not name.isprintable() or not 1 <= len(name) <= 100:
        raise InvalidInputError("name", "must be 1 to 100 printable characters", name)
    now = _now_ms()
    if expires_at_ms is not None and not now < expires_at_ms <= MAX_EXPIRES_AT_MS:
        raise InvalidInputError("expires", "must be in the future, up to year 9999", expires_at_ms)
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    record = KeyRecord(
        key_id,
        name,
        chosen,
        _digest(secret),
        now,
        expires_at_ms=expires_at_ms,
        surfaces=_checked_surfaces(surfaces),
    )
    return f"{_PREFIX}_{key_id}_{secret}", record


def create_key(
    store: Store,
    name: str,
    rights: Iterable[str],
    *,
    expires_at_ms: int | None = None,
    surfaces: Iterable[str] = (),
) -> str:
    """Create an API key in a store and return it.

    Parameters
    ----------
    store
        Store of the key.
    name, rights, expires_at_ms, surfaces
        As for `new_api_key`.

    Raises
    ------
    InvalidInputError
        If a parameter is invalid.
    StoreError
        If the store cannot be written to.
    """
    key, record = new_api_key(name, rights, expires_at_ms=expires_at_ms, surfaces=surfaces)
    store.add_key(record)
    return key


def verify_key(key: str, records: Mapping[str, KeyRecord]) -> KeyRecord | None:
    """Return the record of a key, or None if the key is unknown, wrong, revoked or expired.

    Parameters
    ----------
    key
        The key as the client sent it.
    records
        All keys of the store, by id.
    """
    prefix, _, rest = key.partition("_")
    key_id, _, secret = rest.partition("_")
    record = records.get(key_id)
    if record is None or prefix != _PREFIX or not record.is_valid(_now_ms()):
        return None
    return record if hmac.compare_digest(_digest(secret), record.digest) else None


def _checked_surfaces(surfaces: Iterable[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(surfaces))
    if len(names) > MAX_SURFACES_PER_KEY:
        raise InvalidInputError("surfaces", f"must be at most {MAX_SURFACES_PER_KEY} names", len(names))
    for name in names:
        if not re.fullmatch(SURFACE_NAME, name):
            raise InvalidInputError("surfaces", "must be exact names of surfaces", name)
    return names


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
