"""Strict HTTP/1.1 for uvicorn: ``uvicorn.run(app, http=StrictHttpProtocol)``.

Imports nothing of the rest of the package. The protocol rejects ambiguous requests, and bounds the memory and
the time that a client can take. It serves any ASGI application, with a task for each request; it ignores
upgrades, so there are no WebSockets, and writes no access log.
"""

from ._exchange import EXTENSION
from ._protocol import StrictHttpProtocol

__all__ = ["EXTENSION", "StrictHttpProtocol"]
