"""The service as an ASGI application.

Every request takes the same way: host check, route, authentication, body, handler, response. Rankings and
feedback are requested thousands of times a second, so nothing else stands between server and handler.
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

from banditrank.dashboard.surface_monitor import SurfaceMonitors
from banditrank.engine.engine import Engine
from banditrank.engine.group_commit import CommitCallback, CommitOutcome, run_callbacks
from banditrank.engine.surface import SURFACE_NAME
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import BanditRankError, StoreError, UnknownNameError
from banditrank.model.problem import Problem
from banditrank.service import (
    access,
    dashboard_operations,
    health,
    openapi,
    pages,
    rankings,
    reports,
    surfaces,
)
from banditrank.service.bodies import Bodies
from banditrank.service.hosts import OwnHosts
from banditrank.service.messages import (
    Receive,
    Request,
    RequestHeaders,
    Response,
    Scope,
    Send,
    query_of,
)
from banditrank.service.metrics import Metrics
from banditrank.service.operations import Operation, Router
from banditrank.service.origins import answer_across_origins
from banditrank.service.pools import Pools
from banditrank.service.problems import (
    CLIENT_DISCONNECTED,
    UNKNOWN_SURFACE,
    ProblemError,
    is_internal,
    response_to,
)
from banditrank.service.process_memory import TRIM_SECONDS, freeze_objects, trim_heap
from banditrank.service.readiness import Readiness
from banditrank.service.repeating import repeat
from banditrank.service.request_ids import RequestIds
from banditrank.service.rights import ANYONE, KEY_SECONDS, Principal, Rights
from banditrank.service.settings import Settings
from banditrank.service.shared_documents import SharedDocuments
from banditrank.service.streams import OpenStreams, Stream
from banditrank.service.tallies import SHARING_SECONDS
from banditrank.service.vitals import SAMPLE_SECONDS, Vitals

OPERATIONS: tuple[Operation, ...] = (
    *surfaces.OPERATIONS,
    *rankings.OPERATIONS,
    *reports.OPERATIONS,
    *dashboard_operations.OPERATIONS,
    *health.OPERATIONS,
    *access.OPERATIONS,
    *pages.OPERATIONS,
    *openapi.OPERATIONS,
)

_FREEZE_SECONDS = 5.0
_PARENT_SECONDS = 1.0


class Application:
    """Answers requests.

    Parameters
    ----------
    settings
        Settings of the service.
    truths
        The true problems of surfaces whose users are simulated, by name: dashboards show them beside.
    shared
        Directory in which workers share their metrics; None if this is the only worker.
    owns_process
        Whether the process does nothing else, so that its memory may be managed.
    """

    engine: Engine
    metrics: Metrics
    vitals: Vitals
    documents: SharedDocuments
    readiness: Readiness
    pools: Pools
    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        settings: Settings,
        truths: Mapping[str, Problem] = MappingProxyType({}),
        shared: Path | None = None,
        *,
        owns_process: bool = False,
    ) -> None:
        self.settings = settings
        self._owns_process = owns_process
        self._frozen_surfaces: set[int] | None = None
        self._truths = truths
        self._shared = shared
        self.log = logging.getLogger("banditrank.service")
        self.router = Router(OPERATIONS)
        self.bodies = Bodies(OPERATIONS, largest=settings.largest_body, seconds=settings.body_seconds)
        self._own_hosts = OwnHosts()
        self._request_ids = RequestIds()
        self.rights = Rights(always=settings.demands_keys)
        self._background: list[asyncio.Task[None]] = []
        self.streams = OpenStreams(settings.most_streams)
        self.stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        if scope["type"] == "http":
            if self.settings.allow_origins:
                allowed = self.settings.allow_origins
                await answer_across_origins(self._answer, allowed, scope, receive, send)
            else:
                await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            scope.setdefault("state", {})["stopping"] = self.stopping  # for `HttpProtocol.shutdown`
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        headers: RequestHeaders = dict(scope["headers"])
        request_id = self._request_ids.for_request(headers)
        name, failure, unread = "none", None, _declares_body(headers)
        response: Response | Stream
        try:
            self._check_host(headers)
            operation, parameters = self.router.find(scope["method"], _raw_path(scope))
            name = operation.name
            principal = self._authorize(operation, parameters, headers)
            body = None
            if operation.body is not None:
                content = await self.bodies.read(headers, receive)
                unread = False
                body = self.bodies.decode(operation, content)
            query = query_of(scope) if operation.query else {}
            request = Request(request_id, parameters, query, body, headers, principal)
            if operation.cancellable and not unread:
                response = await _unless_disconnected(operation.handler(self, request), receive)
            else:
                response = await operation.handler(self, request)
        except Exception as error:  # noqa: BLE001 - every error is answered
            failure = error
            response = response_to(error, request_id)
        if scope["method"] == "HEAD":
            response = response.head()
        if isinstance(response, Response):
            close = unread and not await _is_received(headers, receive)
            await response.send(send, request_id, close=close)
        self._record(request_id, name, response.status, start, failure)
        if isinstance(response, Stream):  # recorded when it begins: it may be open for hours
            await self._stream(response, request_id, name, receive, send)

    def _check_host(self, headers: RequestHeaders) -> None:
        if not self.rights.demanded:
            self._own_hosts.check(headers)

    def _authorize(
        self, operation: Operation, parameters: Mapping[str, str], headers: RequestHeaders
    ) -> Principal:
        """Return the caller, or raise a 401 or 403."""
        if operation.right is None:
            return ANYONE
        principal = self.rights.authenticate(headers)
        if operation.scope == "handler":
            principal.check_right(operation.right)
        else:
            principal.check(operation.right, parameters.get("surface"))
        return principal

    def _record(
        self, request_id: str, name: str, status: int, start: float, failure: Exception | None
    ) -> None:
        """Count a request, and log it if it failed or all are logged."""
        seconds = time.perf_counter() - start
        self.metrics.request(name, status, seconds)
        if failure is not None:
            self.log_failure(request_id, name, failure)
        if self.settings.log_requests:
            self.log.info(
                "request",
                extra={
                    "request_id": request_id,
                    "operation": name,
                    "status": status,
                    "milliseconds": round(seconds * 1e3, 2),
                },
            )

    def log_failure(self, request_id: str, name: str, error: Exception) -> None:
        """Log an error whose details the client is not told."""
        if is_internal(error):
            known = isinstance(error, StoreError)
            self.log.error(
                "request failed",
                exc_info=None if known else error,
                extra={"request_id": request_id, "operation": name, "error": str(error)},
            )

    def log_action(self, request: Request, action: str, **details: object) -> None:
        """Log an administrative action with the id of the API key."""
        known = {"request_id": request.id, "key_id": request.principal.key_id}
        self.log.info(action, extra={**known, **details})

    async def _stream(self, stream: Stream, request_id: str, name: str, receive: Receive, send: Send) -> None:
        try:
            await stream.send(send, receive, self.stopping, request_id)
        except Exception:  # the client notices that the response has no end, and reconnects
            self.log.exception("stream failed", extra={"request_id": request_id, "operation": name})
            raise

    async def surface(self, request: Request) -> SurfaceRuntime:
        """Return the surface that a path names.

        Raises
        ------
        ProblemError
            A 404 if there is none.
        """
        name = request.parameters["surface"]
        live = self.engine.loaded(name)
        if live is not None:
            return live
        if re.fullmatch(SURFACE_NAME, name):
            with contextlib.suppress(UnknownNameError):
                return await self.pools.store.run(self.engine.surface, name)
        raise ProblemError(UNKNOWN_SURFACE, f"there is no surface {name[:80]!r}")

    # Starting and stopping with the server

    async def _live(self, receive: Receive, send: Send) -> None:
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
        """Open the store and start background work."""
        self.loop = asyncio.get_running_loop()
        self.pools = Pools()
        store = await self.pools.control.run(self.settings.open_store)
        self.monitors = SurfaceMonitors(bucket_seconds=self.settings.bucket_seconds, problems=self._truths)
        try:
            self.engine = await self.pools.control.run(
                lambda: Engine(
                    store,
                    sync_seconds=self.settings.sync_seconds,
                    deliver=self._deliver,
                    observe=self.monitors.observe,
                )
            )
        except BaseException:
            self.monitors.close()
            raise
        self.metrics = Metrics(self.engine, self._shared)
        self.vitals = Vitals(self.engine, self.metrics)
        self.documents = SharedDocuments(self.engine, self.monitors, self.vitals, self.pools.dashboards)
        self.readiness = Readiness(store, self.pools.control)
        await self._load_keys()
        self._begin("API key refresh", self._reload_keys, KEY_SECONDS)
        self._begin("health sampling", self._measure, SAMPLE_SECONDS)
        if self._shared is not None:
            self._begin("metrics sharing", self._share_metrics, SHARING_SECONDS)
            self._begin("parent check", _stop_without_parent, _PARENT_SECONDS)
        if self._owns_process:
            self._begin("object freezing", self._freeze_objects, _FREEZE_SECONDS)
            self._begin("heap trimming", self._trim_heap, TRIM_SECONDS)
        self.log.info("started", extra={"surfaces": len(self.engine.surfaces())})
        if self.rights.nobody_has_any:
            self.log.warning("API keys are demanded and there are none: make one with banditrank keys create")

    async def stop(self) -> None:
        """Write what is waiting, and close the store."""
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
        self.log.info("stopped")

    def _deliver(self, calls: Sequence[tuple[CommitCallback, CommitOutcome]]) -> None:
        """Run commit callbacks in the event loop, a group at a time."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request is pending
            self.loop.call_soon_threadsafe(run_callbacks, calls)

    def _begin(self, what: str, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        self._background.append(asyncio.create_task(repeat(what, work, seconds)))

    async def _load_keys(self) -> None:
        self.rights.load(await self.pools.control.run(self.engine.store.api_keys))

    async def _reload_keys(self) -> None:
        with contextlib.suppress(StoreError):  # the engine logs that the store is unavailable
            await self._load_keys()

    async def _share_metrics(self) -> None:
        await self.pools.control.run(self.metrics.share)

    async def _freeze_objects(self) -> None:
        """Exempt what lives as long as the process from garbage collection, when surfaces were opened."""
        surfaces = {live.surface_id for live in self.engine.surfaces()}
        if self._frozen_surfaces is None or not surfaces <= self._frozen_surfaces:
            freeze_objects()
        self._frozen_surfaces = surfaces

    async def _trim_heap(self) -> None:
        await self.pools.control.run(trim_heap)

    async def _measure(self) -> None:
        self.vitals.sample()


async def _unless_disconnected(handling: Awaitable[Response | Stream], receive: Receive) -> Response | Stream:
    """Return the response, or cancel the handler when the client disconnects."""
    handler = asyncio.ensure_future(handling)
    disconnect = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((handler, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if not handler.done():
            raise ProblemError(CLIENT_DISCONNECTED, "the client disconnected before the answer")
        return handler.result()
    finally:
        for task in (handler, disconnect):
            task.cancel()
        await asyncio.gather(handler, disconnect, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _is_received(headers: RequestHeaders, receive: Receive) -> bool:
    """Return whether the body of a request has arrived that no handler has read."""
    if headers.get(b"expect") is not None:  # the client waits for the word to send it
        return False
    try:
        async with asyncio.timeout(0):
            while (message := await receive())["type"] == "http.request":
                if not message.get("more_body", False):
                    return True
    except TimeoutError:
        pass
    return False


def _declares_body(headers: RequestHeaders) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else raw.decode("latin-1")


async def _stop_without_parent() -> None:
    """Stop a worker whose parent was killed: nobody else would, and it has the port."""
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        signal.raise_signal(signal.SIGTERM)
