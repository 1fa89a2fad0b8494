"""The service on Granian: ``granian_service.py asgi|rsgi STORE PORT``; needs ``pip install granian``.

Only for `servers.py`, which compares HTTP servers with this application on them. Over RSGI a request takes
the same steps as in `Application`, with the body and the response in one call each.
"""

import asyncio
import sys
import time
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from banditrank.service._application import Application
from banditrank.service._http import Request
from banditrank.service._http_errors import error_response
from banditrank.service._settings import Settings


class RsgiService:
    """Answers requests for rankings and feedback over RSGI."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(self._application.start())

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.run_until_complete(self._application.stop())

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        start, application, name, failure = time.perf_counter(), self._application, "none", None
        headers = {key.encode(): value.encode() for key, value in scope.headers.items()}
        request_id = application._request_ids.for_request(headers)
        try:
            application._check_host(headers)
            route, parameters = application.router.find(scope.method, scope.path)
            name = route.operation_id
            principal = application._authorize(route, parameters, headers)
            body = None
            if route.request_schema is not None:
                async with asyncio.timeout(10):
                    body = application.body_reader.decode(route, await protocol())
            request = Request(request_id, parameters, {}, body, headers, principal)
            response = await route.handler(application, request)
        except Exception as error:  # noqa: BLE001 - every error gets a response
            failure, response = error, error_response(error, request_id)
        response_headers = (*response.headers, *response.caching, (b"content-type", response.content_type))
        lines = [
            ("x-request-id", request_id),
            *((key.decode(), value.decode()) for key, value in response_headers),
        ]
        protocol.response_bytes(response.status, lines, response.body)
        application._record(request_id, name, response.status, start, failure)


def make() -> Any:
    """Make the application of the worker process."""
    sys.setswitchinterval(0.0005)
    application = Application(Settings(store=f"sqlite:{STORE}"), owns_process=True)
    return RsgiService(application) if KIND == "rsgi" else application


KIND, STORE, PORT = sys.argv[1:]
if __name__ == "__main__":
    Granian(
        "unused",
        port=int(PORT),
        interface=Interfaces.RSGI if KIND == "rsgi" else Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        websockets=False,
        loop=Loops.uvloop,
        log_enabled=False,
    ).serve(target_loader=make, wrap_loader=False)
