"""HTTP service: ASGI application, routes, dashboard pages, metrics and server."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.service._application import create_app, lifespan
    from banditrank.service._server import serve
    from banditrank.service._settings import Settings

__all__ = [
    "Settings",
    "create_app",
    "lifespan",
    "serve",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_application": ("create_app", "lifespan"),
            "_server": ("serve",),
            "_settings": ("Settings",),
        },
        extra="service",
    )
