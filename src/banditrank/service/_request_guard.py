"""Guard (placeholder)."""

from starlette.types import ASGIApp, Receive, Scope, Send


class RequestGuard:
    """Guard."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            scope["headers"] = list(scope["headers"])
        await self._app(scope, receive, send)
