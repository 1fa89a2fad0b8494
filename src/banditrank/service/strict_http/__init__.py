"""A strict HTTP/1.1 protocol for uvicorn: ``uvicorn.run(app, http=StrictHttpProtocol)``.

Imports nothing of the rest of the package. It rejects requests whose end or host is ambiguous, and bounds the
memory and the time that a client can take: of heads, bodies, pipelined requests, unread responses and idle
connections. It serves any ASGI application, with a task for each request; it ignores upgrades, so that there
are no WebSockets, and writes no access log.
"""

from banditrank.service.strict_http.exchange import EXTENSION
from banditrank.service.strict_http.protocol import StrictHttpProtocol

__all__ = ["EXTENSION", "StrictHttpProtocol"]
