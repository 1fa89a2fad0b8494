"""Addresses of stores: the options of our own in them, and what of them may be shown."""

import re
from urllib.parse import unquote

from banditrank.errors import InvalidInputError

_LIKE_A_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(//)?", re.IGNORECASE)


def shown(address: str) -> str:
    """Return an address as it may stand in a message: without whatever might be a password.

    Examples
    --------
    >>> shown("mysql://host/base")
    'mysql://host/base'
    >>> shown("postgresql://somebody:secret@host/base")
    'postgresql://…'
    """
    if "@" not in address and "?" not in address:
        return address
    scheme = _LIKE_A_SCHEME.match(address)
    return f"{scheme[0] if scheme else ''}…"


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
