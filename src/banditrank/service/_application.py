"""The service as an ASGI application.

Every request takes the same steps: host check, routing, authentication, body, handler, response. Rankings and
feedback are requested thousands of times a second, so there is no framework between server and handlers.
"""

import asyncio
import contextlib
import logging
import re
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from multiprocessing import parent_process
from pathlib import Path
from types import MappingProxyType

from banditrank.dashboard._surface_monitor import SurfaceMonitors
from banditrank.engine._engine import Engine
from banditrank.engine._failure_log import log_failure
from banditrank.engine._group_commit import CommitCallback, CommitOutcome, run_callbacks
from banditrank.engine._surface_name import SURFACE_NAME
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import BanditRankError, CompilingError, StoreError, UnknownNameError
from banditrank.model._problem import Problem
from banditrank.service import _auth as auth
from banditrank.service import _dashboard_routes as dashboard_routes
from banditrank.service import _health_routes as health_routes
from banditrank.service import _openapi as openapi
from banditrank.service import _ranking_routes as ranking_routes
from banditrank.service import _report_routes as report_routes
from banditrank.service import _static_files as static_files
from banditrank.service import _surface_routes as surface_routes
from banditrank.service._auth import ANONYMOUS, KEY_REFRESH_SECONDS, Authenticator, Principal
from banditrank.service._cors import cors_middleware
from banditrank.service._dashboard_cache import DashboardCache
from banditrank.service._health_monitor import SAMPLE_SECONDS, HealthMonitor
from banditrank.service._health_routes import ReadinessCheck
from banditrank.service._host_check import HostCheck
from banditrank.service._http import (
    Receive,
    Request,
    RequestHeaders,
    RequestIds,
    Response,
    Scope,
    Send,
    parse_query,
    receive_now,
    wait_for_disconnect,
)
from banditrank.service._http_errors import (
    CLIENT_DISCONNECTED,
    UNKNOWN_SURFACE,
    HttpError,
    error_response,
    is_internal,
)
from banditrank.service._metrics import Metrics
from banditrank.service._periodic import run_periodically
from banditrank.service._process_memory import TRIM_SECONDS, freeze_objects, trim_heap
from banditrank.service._request_body import BodyReader
from banditrank.service._routing import Route, Router
from banditrank.service._settings import Settings
from banditrank.service._streams import StreamingResponse, StreamLimiter
from banditrank.service._thread_pools import ThreadPools
from banditrank.service._worker_metrics import SHARE_INTERVAL_SECONDS

ROUTES: tuple[Route, ...] = (
    *surface_routes.ROUTES,
    *ranking_routes.ROUTES,
    *report_routes.ROUTES,
    *dashboard_routes.ROUTES,
    *health_routes.ROUTES,
    *auth.ROUTES,
    *static_files.ROUTES,
    *openapi.ROUTES,
)

_LOAD_SECONDS = 10.0  # for which the start waits for surfaces, unless code must be compiled
_FREEZE_SECONDS = 5.0
_PARENT_CHECK_SECONDS = 1.0


class Application:
    """The ASGI application of one worker process.

    Parameters
    ----------
    settings
        Settings of the service.
    true_problems
        True problems of surfaces with simulated users, by name; their dashboards show the true values.
    metrics_directory
        Directory in which workers share their metrics; None for a single worker.
    owns_process
        Whether nothing else runs in the process, so that its garbage collection and heap may be tuned.
    loads_in_background
        Whether the application starts before code is compiled; it is not ready until then.

    Attributes
    ----------
    engine, monitors, metrics, health_monitor, dashboard_cache, readiness, pools, loop
        Set by `start`.
    """

    engine: Engine
    monitors: SurfaceMonitors
    metrics: Metrics
    health_monitor: HealthMonitor
    dashboard_cache: DashboardCache
    readiness: ReadinessCheck
    pools: ThreadPools
    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        settings: Settings,
        true_problems: Mapping[str, Problem] = MappingProxyType({}),
        metrics_directory: Path | None = None,
        *,
        owns_process: bool = False,
        loads_in_background: bool = False,
    ) -> None:
        self.settings = settings
        self._loads_in_background = loads_in_background
        self._owns_process = owns_process
        self._frozen_surfaces: set[int] | None = None
        self._true_problems = true_problems
        self._metrics_directory = metrics_directory
        self.log = logging.getLogger("banditrank.service")
        self.router = Router(ROUTES)
        self.body_reader = BodyReader(
            ROUTES, max_bytes=settings.max_body_bytes, timeout_seconds=settings.body_timeout_seconds
        )
        self._host_check = HostCheck()
        self._request_ids = RequestIds()
        self.authenticator = Authenticator(always_required=settings.keys_required)
        self._background: list[asyncio.Task[None]] = []
        self.streams = StreamLimiter(settings.max_streams)
        self.stopping = asyncio.Event()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle an HTTP request or the lifespan of the server."""
        if scope["type"] == "http":
            if self.settings.allow_origins:
                origins, methods = self.settings.allow_origins, self.router.methods
                return cors_middleware(self._handle, origins, methods, scope, receive, send)
            return self._handle(scope, receive, send)
        if scope["type"] == "lifespan":
            scope.setdefault("state", {})["stopping"] = self.stopping  # for `HttpProtocol.shutdown`
            return self._run_lifespan(receive, send)
        return send({"type": "websocket.close", "code": 1000})

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        headers: RequestHeaders = dict(scope["headers"])
        request_id = self._request_ids.for_request(headers)
        operation_id, failure, is_unread = "none", None, _has_body(headers)
        response: Response | StreamingResponse
        try:
            self._check_host(headers)
            route, parameters = self.router.find(scope["method"], _raw_path(scope))
            operation_id = route.operation_id
            principal = self._authorize(route, parameters, headers)
            body = None
            if route.request_schema is not None:
                content = await self.body_reader.read(headers, receive)
                is_unread = False
                body = self.body_reader.decode(route, content)
            query = parse_query(scope) if route.query else {}
            request = Request(request_id, parameters, query, body, headers, principal)
            if route.is_cancellable and not is_unread:
                response = await _run_unless_disconnected(route.handler(self, request), receive)
            else:
                response = await route.handler(self, request)
        except Exception as error:  # noqa: BLE001 - every error gets a response
            failure = error
            response = error_response(error, request_id)
        if scope["method"] == "HEAD":
            response = response.head()
        if isinstance(response, Response):
            close = is_unread and not _body_has_arrived(headers, receive)
            await response.send(send, request_id, close=close)
        self._record(request_id, operation_id, response.status, start, failure)
        if isinstance(response, StreamingResponse):  # recorded at its start: it may be open for hours
            await self._send_stream(response, request_id, operation_id, receive, send)

    def _check_host(self, headers: RequestHeaders) -> None:
        if not self.authenticator.is_required:
            self._host_check.check(headers)

    def _authorize(self, route: Route, parameters: Mapping[str, str], headers: RequestHeaders) -> Principal:
        """Return the caller, or raise a 401 or 403."""
        if route.right is None:
            return ANONYMOUS
        principal = self.authenticator.authenticate(headers)
        if route.scope == "handler":
            principal.check_right(route.right)
        else:
            principal.check(route.right, parameters.get("surface"))
        return principal

    def _record(
        self, request_id: str, operation_id: str, status: int, start: float, failure: Exception | None
    ) -> None:
        """Count a request; log it if it failed or if all requests are logged."""
        seconds = time.perf_counter() - start
        self.metrics.record_request(operation_id, status, seconds)
        if failure is not None:
            self.log_failure(request_id, operation_id, failure)
        if self.settings.log_requests:
            self.log.info(
                "request",
                extra={
                    "request_id": request_id,
                    "operation": operation_id,
                    "status": status,
                    "milliseconds": round(seconds * 1e3, 2),
                },
            )

    def log_failure(self, request_id: str, operation_id: str, error: Exception) -> None:
        """Log an error whose message is not sent to the client."""
        if is_internal(error):
            fields = {"request_id": request_id, "operation": operation_id}
            log_failure(self.log, logging.ERROR, "request failed", error, **fields)

    def log_action(self, request: Request, action: str, **fields: object) -> None:
        """Log an administrative action with the id of the API key."""
        self.log.info(action, extra={"request_id": request.id, "key_id": request.principal.key_id, **fields})

    async def _send_stream(
        self, stream: StreamingResponse, request_id: str, operation_id: str, receive: Receive, send: Send
    ) -> None:
        try:
            await stream.send(send, receive, self.stopping, request_id)
        except Exception:  # the client notices the missing end of the response, and reconnects
            self.log.exception("stream failed", extra={"request_id": request_id, "operation": operation_id})
            raise

    def loaded_surface(self, request: Request) -> SurfaceRuntime | None:
        """Return the surface in the path of a request if it is loaded, without reading the store."""
        return self.engine.loaded(request.parameters["surface"])

    async def surface(self, request: Request) -> SurfaceRuntime:
        """Return the surface in the path of a request.

        Raises
        ------
        HttpError
            A 404 if it does not exist.
        CompilingError
            If it is not loaded yet, because code is being compiled.
        """
        runtime = self.loaded_surface(request)
        if runtime is not None:
            return runtime
        name = request.parameters["surface"]
        if re.fullmatch(SURFACE_NAME, name):
            if self._loads_in_background and name in self.engine.compilations.surfaces:
                raise CompilingError(name)  # without a thread
            with contextlib.suppress(UnknownNameError):
                return await self.pools.store.run(self.engine.surface, name)
        raise HttpError(UNKNOWN_SURFACE, f"surface {name[:80]!r} does not exist")

    # Lifespan

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.start()
        except BanditRankError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def start(self) -> None:
        """Open the store and start the background tasks.

        Raises
        ------
        BanditRankError
            If the store cannot be opened.
        """
        self.loop = asyncio.get_running_loop()
        self.pools = ThreadPools()
        store = await self.pools.control.run(self.settings.open_store)
        self.monitors = SurfaceMonitors(
            bucket_seconds=self.settings.bucket_seconds, problems=self._true_problems
        )
        try:
            self.engine = await self.pools.control.run(
                lambda: Engine(
                    store,
                    sync_seconds=self.settings.sync_seconds,
                    deliver=self._deliver,
                    observe=self.monitors.observe,
                    loads_in_background=self._loads_in_background,
                )
            )
            await self.pools.control.run(self.engine.wait_until_loaded, _LOAD_SECONDS)
        except BaseException:
            self.monitors.close()
            raise
        self.metrics = Metrics(self.engine, self._metrics_directory)
        self.health_monitor = HealthMonitor(self.engine, self.metrics)
        self.dashboard_cache = DashboardCache(
            self.engine, self.monitors, self.health_monitor, self.pools.dashboards, self.pools.assessments
        )
        self.readiness = ReadinessCheck(self.engine, self.pools.control)
        await self._load_keys()
        self._run_in_background("refresh API keys", self._refresh_keys, KEY_REFRESH_SECONDS)
        self._run_in_background("sample health", self._sample_health, SAMPLE_SECONDS)
        if self._metrics_directory is not None:
            self._run_in_background("share metrics", self._share_metrics, SHARE_INTERVAL_SECONDS)
            self._run_in_background("check parent process", _stop_without_parent, _PARENT_CHECK_SECONDS)
        if self._owns_process:
            self._run_in_background("freeze objects", self._freeze_objects, _FREEZE_SECONDS)
            self._run_in_background("trim heap", self._trim_heap, TRIM_SECONDS)
        self.log.info("service started", extra={"surfaces": len(self.engine.surfaces())})
        if self.authenticator.has_no_valid_key:
            self.log.warning("API keys are required and none is valid: run banditrank keys create")

    async def stop(self) -> None:
        """Commit all pending events and close the store."""
        self.stopping.set()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await asyncio.to_thread(self.monitors.close)
        await asyncio.to_thread(self.engine.close)
        with contextlib.suppress(OSError):
            await self._share_metrics()
        await asyncio.to_thread(self.pools.close)
        await asyncio.to_thread(self.engine.store.close)
        self.log.info("service stopped")

    def _deliver(self, calls: Sequence[tuple[CommitCallback, CommitOutcome]]) -> None:
        """Run commit callbacks in the event loop, one group at a time."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request is pending
            self.loop.call_soon_threadsafe(run_callbacks, calls)

    # Background tasks

    def _run_in_background(
        self, name: str, task: Callable[[], Awaitable[None]], interval_seconds: float
    ) -> None:
        self._background.append(asyncio.create_task(run_periodically(name, task, interval_seconds)))

    async def _load_keys(self) -> None:
        self.authenticator.load(await self.pools.control.run(self.engine.store.api_keys))

    async def _refresh_keys(self) -> None:
        with contextlib.suppress(StoreError):  # the engine logs that the store is unavailable
            await self._load_keys()

    async def _share_metrics(self) -> None:
        await self.pools.control.run(self.metrics.share)

    async def _freeze_objects(self) -> None:
        """Exempt long-lived objects from garbage collection after surfaces were opened."""
        surfaces = {runtime.surface_id for runtime in self.engine.surfaces()}
        if self._frozen_surfaces is None or not surfaces <= self._frozen_surfaces:
            freeze_objects()
        self._frozen_surfaces = surfaces

    async def _trim_heap(self) -> None:
        await self.pools.control.run(trim_heap)

    async def _sample_health(self) -> None:
        self.health_monitor.sample()


async def _run_unless_disconnected(
    handling: Awaitable[Response | StreamingResponse], receive: Receive
) -> Response | StreamingResponse:
    """Return the response, or cancel the handler when the client disconnects."""
    handler = asyncio.ensure_future(handling)
    disconnect = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait((handler, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not handler.done():
            raise HttpError(CLIENT_DISCONNECTED, "the client disconnected before the response")
        return handler.result()
    finally:
        for task in (handler, disconnect):
            task.cancel()
        await asyncio.gather(handler, disconnect, return_exceptions=True)


def _body_has_arrived(headers: RequestHeaders, receive: Receive) -> bool:
    """Return whether a body that no handler read has arrived already."""
    if headers.get(b"expect") is not None:  # the client waits for a 100 before it sends the body
        return False
    while (message := receive_now(receive)) is not None and message["type"] == "http.request":
        if not message.get("more_body", False):
            return True
    return False


def _has_body(headers: RequestHeaders) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("latin-1")


async def _stop_without_parent() -> None:
    """Stop this worker if its parent process was killed: it would keep the port."""
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        signal.raise_signal(signal.SIGTERM)
