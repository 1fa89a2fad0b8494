"""Cross-origin resource sharing (CORS) for an explicit list of origins; none by default."""

import re
from collections.abc import Sequence

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from banditrank.errors import InvalidInputError

LOOPBACK = "loopback"
"""Stands for all origins on this machine, at any port."""

_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_LOOPBACK_ORIGIN = r"https?://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?"
# Browsers omit them.
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def check_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return the origins as browsers send them: in lower case, without default ports.

    Raises
    ------
    InvalidInputError
        If one of them is neither an origin nor ``loopback``.

    Examples
    --------
    >>> check_origins(["https://Shop.example", "loopback"])
    ('https://shop.example', 'loopback')
    >>> check_origins(["https://shop.example/page"])
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: allow_origins must be origins such as https://shop.example, or
        loopback, got 'https://shop.example/page'
    """
    return tuple(origin if origin == LOOPBACK else _normalize(origin) for origin in origins)


def cors_middleware(origins: Sequence[str], methods: Sequence[str]) -> list[Middleware]:
    """Return the middleware that allows origins, or an empty list if there are none.

    Parameters
    ----------
    origins
        Origins as `check_origins` returns them.
    methods
        Methods of all routes.
    """
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=[origin for origin in origins if origin != LOOPBACK],
            allow_origin_regex=_LOOPBACK_ORIGIN if LOOPBACK in origins else None,
            allow_methods=methods,
            allow_headers=["authorization"],
        )
    ]


def _normalize(origin: str) -> str:
    match = _ORIGIN.fullmatch(origin.lower()) if isinstance(origin, str) else None
    if match is None:
        rule = f"must be origins such as https://shop.example, or {LOOPBACK}"
        raise InvalidInputError("allow_origins", rule, origin)
    scheme, host, port = match.groups()
    return f"{scheme}://{host}" + ("" if port == _DEFAULT_PORTS[scheme] or port is None else f":{port}")
