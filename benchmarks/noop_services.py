"""Services with empty handlers, for comparison: ``noop_services.py asgi|limited|fastapi PORT``.

``limited`` is the same as ``asgi``, on the protocol of the service with its limits.
"""

import sys
from typing import Any

import uvicorn

from banditrank.service.strict_http import StrictHttpProtocol

ANSWER = (
    b'{"id":"' + b"A" * 76 + b'","items":["item-1","item-2","item-3","item-4"],'
    b'"expires_at":"2026-01-01T00:00:00.000000Z"}'
)
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Read the body and send an answer as long as a ranking."""
    if scope["type"] == "http":
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": ANSWER})


def fastapi() -> Any:
    """Return the same as one would write it with FastAPI."""
    from fastapi import FastAPI  # noqa: PLC0415 - only this one needs it
    from pydantic import BaseModel  # noqa: PLC0415

    class Ranking(BaseModel):
        id: str
        items: list[str]
        expires_at: str

    application = FastAPI()
    ranking = Ranking.model_validate_json(ANSWER)

    async def answer(_: dict[str, Any]) -> Ranking:
        return ranking

    application.post("/v1/surfaces/{surface}/rankings")(answer)
    application.post("/v1/feedback")(answer)
    return application


if __name__ == "__main__":
    kind, port = sys.argv[1:]
    uvicorn.run(
        fastapi() if kind == "fastapi" else asgi,
        port=int(port),
        http=StrictHttpProtocol if kind == "limited" else "httptools",
        loop="uvloop",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
