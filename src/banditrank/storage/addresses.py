"""Addresses of stores: the options of our own in them, and what of them may be shown."""

import re
from pathlib import Path
from urllib.parse import unquote

from banditrank.errors import InvalidInputError

_LIKE_A_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(//)?", re.IGNORECASE)
_WITHOUT_SECRETS = re.compile(r"((sqlite|memory):)?[^:@?=]*", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(r"[^:@]*:[^@]+@")
_PASSWORD_OPTION = re.compile(r"password\s*=\s*[^&\s]", re.IGNORECASE)
_AUTHORITY = re.compile(r"[a-z]+://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


def redacted(address: str) -> str:
    """Return an address as it may stand in a message: without whatever might be a password.

    Examples
    --------
    >>> redacted("sqlite:shop.db"), redacted("shop.db")
    ('sqlite:shop.db', 'shop.db')
    >>> redacted("postgresql://user:secret@host/base")
    'postgresql://…'
    >>> redacted("host=here password=secret")
    '…'
    """
    if _WITHOUT_SECRETS.fullmatch(address):
        return address
    scheme = _LIKE_A_SCHEME.match(address)
    return f"{scheme[0] if scheme else ''}…"


def has_password(address: str) -> bool:
    """Return whether an address holds a password, or what may be one.

    Examples
    --------
    >>> has_password("postgresql://user:secret@host/base"), has_password("redis://host/0?password=secret")
    (True, True)
    >>> has_password("postgresql://user@host:5432/base"), has_password("sqlite:a:b@c.db")
    (False, False)
    """
    if sqlite_file(address) is not None or is_in_memory(address):
        return False
    after_scheme = address.partition("://")[2] or address
    return bool(_USER_AND_PASSWORD.match(after_scheme) or _PASSWORD_OPTION.search(unquote(address)))


def check_quoting(address: str) -> None:
    """Refuse an address of which a part of the password would be taken for a host, and be told as such.

    Examples
    --------
    >>> check_quoting("redis://:p%40ss@host/0")
    >>> check_quoting("redis://:p@ss@host/0")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: store must have %40, %2F, %3F and %23 for @, /, ? and # in its
        password and options, got 'redis://…'
    """
    parts = _AUTHORITY.fullmatch(address)
    if parts and (parts[1].count("@") > 1 or "@" in parts[2] or "#" in parts[2]):
        rule = "must have %40, %2F, %3F and %23 for @, /, ? and # in its password and options"
        raise InvalidInputError("store", rule, redacted(address))


def is_in_memory(address: str) -> bool:
    """Return whether an address is that of a store which is gone with the process."""
    return address.lower().startswith("memory:")


def sqlite_file(address: str) -> Path | None:
    """Return the file that an address names, None if it is not an SQLite file's.

    Examples
    --------
    >>> sqlite_file("sqlite:shop.db").name, sqlite_file("memory:")
    ('shop.db', None)
    """
    scheme, _, path = address.partition(":")
    path = path.removeprefix("//")
    return Path(path) if scheme.lower() == "sqlite" and path else None


def without_options(address: str, *names: str) -> tuple[str, dict[str, str]]:
    """Return an address without the options of these names, for a driver that does not know them; and those.

    Examples
    --------
    >>> without_options("redis://host/0?prefix=shop%3A&protocol=3", "prefix", "durability")
    ('redis://host/0?protocol=3', {'prefix': 'shop:'})
    """
    before, _, query = address.partition("?")
    kept, taken = [], {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name in names:
            taken[name] = unquote(value)
        elif part:
            kept.append(part)
    return "?".join([before, *(["&".join(kept)] if kept else [])]), taken


def is_relaxed(options: dict[str, str]) -> bool:
    """Return whether ``durability=relaxed`` was asked for: acknowledged feedback may be lost in a crash."""
    durability = options.get("durability", "full")
    if durability not in {"full", "relaxed"}:
        raise InvalidInputError("durability", "must be full or relaxed", durability)
    return durability == "relaxed"
