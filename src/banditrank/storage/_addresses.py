"""Store addresses: options, redaction and validation."""

import re
from pathlib import Path
from urllib.parse import unquote

from banditrank.errors import InvalidInputError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(//)?", re.IGNORECASE)
_WITHOUT_SECRETS = re.compile(r"((sqlite|memory):)?[^:@?=]*", re.IGNORECASE)
_USER_AND_PASSWORD = re.compile(r"[^:@]*:[^@]+@")
_PASSWORD_OPTION = re.compile(r"password\s*=\s*[^&\s]", re.IGNORECASE)
_AUTHORITY = re.compile(r"[a-z]+://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


def redacted(address: str) -> str:
    """Return an address for messages, without anything that might be a password.

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
    scheme = _SCHEME.match(address)
    return f"{scheme[0] if scheme else ''}…"


def has_password(address: str) -> bool:
    """Return whether an address contains what may be a password.

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
    """Check that no part of the password would be parsed as a host, and appear in messages.

    Raises
    ------
    InvalidInputError
        If the password or an option contains @, /, ? or # unquoted.

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
    """Return whether an address is that of a memory store."""
    return address.lower().startswith("memory:")


def sqlite_file(address: str) -> Path | None:
    """Return the file of an SQLite address, None if it is not an SQLite address with a file.

    Examples
    --------
    >>> sqlite_file("sqlite:shop.db").name, sqlite_file("memory:")
    ('shop.db', None)
    """
    scheme, _, path = address.partition(":")
    path = path.removeprefix("//")
    return Path(path) if scheme.lower() == "sqlite" and path else None


def split_options(address: str, *names: str) -> tuple[str, dict[str, str]]:
    """Return an address without the named options, which its driver does not know, and these options.

    Examples
    --------
    >>> split_options("redis://host/0?prefix=shop%3A&protocol=3", "prefix", "durability")
    ('redis://host/0?protocol=3', {'prefix': 'shop:'})
    """
    base, _, query = address.partition("?")
    others, options = [], {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name in names:
            options[name] = unquote(value)
        elif part:
            others.append(part)
    return "?".join([base, *(["&".join(others)] if others else [])]), options


def is_relaxed(options: dict[str, str]) -> bool:
    """Return whether options have ``durability=relaxed``: a crash may lose acknowledged feedback.

    Raises
    ------
    InvalidInputError
        If the durability is neither full nor relaxed.
    """
    durability = options.get("durability", "full")
    if durability not in {"full", "relaxed"}:
        raise InvalidInputError("durability", "must be full or relaxed", durability)
    return durability == "relaxed"
