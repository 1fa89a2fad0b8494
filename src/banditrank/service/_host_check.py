"""Check of the Host header, as a protection against DNS rebinding.

A web page can make its own host name resolve to this machine after it was loaded. The browser then lets the
page send any request to the service, but the Host header still has the page's host name. Without API keys the
service therefore accepts only loopback hosts.
"""

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from banditrank.service._http_errors import WRONG_HOST, HttpError, error_response
from banditrank.service._requests import info_of

if TYPE_CHECKING:
    from banditrank.service._service import Service

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]*))(?::[0-9]*)?", re.IGNORECASE)
_MAX_ACCEPTED = 100


def is_loopback(host: str) -> bool:
    """Return whether a host name or address, without a port, is a loopback one.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "shop.example")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class HostCheck:
    """Middleware that rejects requests whose Host header is not a loopback host, unless keys are required."""

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self._app = app
        self._service = service
        # Header values that passed: clients repeat a few.
        self._accepted: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and not self._service.authenticator.is_required:
            try:
                self._check(info_of(scope).headers.get(b"host"))
            except HttpError as error:
                await error_response(error, info_of(scope).id)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, value: bytes | None) -> None:
        """Check the Host header; a request without one does not come from a browser and passes."""
        if value is None or value in self._accepted:
            return
        host = value.decode("latin-1")
        match = _HOST.fullmatch(host)
        if match is None or not is_loopback(match[1] or match[2]):
            raise HttpError(
                WRONG_HOST,
                f"without API keys the host must be localhost or 127.0.0.1, got {host[:80]!r}; "
                "banditrank keys create makes a key",
            )
        if len(self._accepted) < _MAX_ACCEPTED:
            self._accepted.add(value)
