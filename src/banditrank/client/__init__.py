"""Synchronous and asynchronous clients of the ranking service.

>>> from banditrank.client import Client
>>> with Client("http://127.0.0.1:8420") as client:  # doctest: +SKIP
...     shown = client.rank("ads", "new")
...     client.feedback(shown.id, clicked=shown.items[0])
'counted'
"""

from banditrank.client.asynchronous import AsyncClient
from banditrank.client.retries import ServiceError
from banditrank.client.synchronous import Client
from banditrank.shown_ranking import ShownRanking

__all__ = ["AsyncClient", "Client", "ServiceError", "ShownRanking"]
