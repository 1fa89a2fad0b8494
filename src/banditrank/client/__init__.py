"""Synchronous and asynchronous clients of the ranking service.

>>> from banditrank.client import Client
>>> with Client("http://127.0.0.1:8420") as client:  # doctest: +SKIP
...     shown = client.rank("ads", "new")
...     client.feedback(shown.id, clicked=shown.items[0])
'counted'
"""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.client._asynchronous import AsyncClient
    from banditrank.client._synchronous import Client

__all__ = [
    "AsyncClient",
    "Client",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_asynchronous": ("AsyncClient",),
            "_synchronous": ("Client",),
        },
        extra="client",
    )
