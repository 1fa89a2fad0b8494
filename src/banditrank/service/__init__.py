"""HTTP service: ASGI application, routes, dashboard pages, metrics and server."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.service._application import Application
    from banditrank.service._server import serve
    from banditrank.service._settings import Settings

__all__ = [
    "Application",
    "Settings",
    "serve",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_application": ("Application",),
            "_server": ("serve",),
            "_settings": ("Settings",),
        },
        extra="service",
    )
