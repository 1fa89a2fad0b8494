"""What the handlers of one process share: the engine, caches, thread pools and background tasks."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

from banditrank.dashboard._surface_monitor import SurfaceMonitors
from banditrank.engine._engine import Engine
from banditrank.engine._failure_log import log_failure
from banditrank.engine._group_commit import CommitCallback, CommitOutcome, run_callbacks
from banditrank.engine._surface_name import SURFACE_NAME
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import CompilingError, StoreError, UnknownNameError
from banditrank.model._problem import Problem
from banditrank.service._auth import KEY_REFRESH_SECONDS, Authenticator
from banditrank.service._dashboard_cache import DashboardCache
from banditrank.service._health_monitor import SAMPLE_SECONDS, HealthMonitor
from banditrank.service._health_routes import ReadinessCheck
from banditrank.service._http_errors import UNKNOWN_SURFACE, HttpError, is_internal
from banditrank.service._metrics import Metrics
from banditrank.service._periodic import run_periodically
from banditrank.service._process_memory import TRIM_SECONDS, freeze_objects, trim_heap
from banditrank.service._requests import Request, RequestInfo
from banditrank.service._settings import Settings
from banditrank.service._thread_pools import ThreadPools
from banditrank.service._worker_metrics import SHARE_INTERVAL_SECONDS

# For which the start waits for surfaces, unless code must be compiled.
_LOAD_SECONDS = 10.0
_FREEZE_SECONDS = 5.0

logger = logging.getLogger("banditrank.service")


class Service:
    """The service of one process.

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
        Whether the service starts before code is compiled; it is not ready until then.

    Attributes
    ----------
    engine, monitors, metrics, health_monitor, dashboard_cache, readiness, pools, loop
        Set while the service runs.
    settings, owns_process
        As given.
    authenticator
        Authenticates requests by API keys.
    stopping
        Set when the service stops, for streams to end.
    n_open_streams
        Number of open event streams.
    is_running
        Whether the service runs.
    is_draining
        Whether each response closes its connection, because another process takes over.
    """

    engine: Engine
    monitors: SurfaceMonitors
    metrics: Metrics
    health_monitor: HealthMonitor
    dashboard_cache: DashboardCache
    readiness: ReadinessCheck
    pools: ThreadPools
    stopping: asyncio.Event
    loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        settings: Settings,
        true_problems: Mapping[str, Problem] = MappingProxyType({}),
        metrics_directory: Path | None = None,
        *,
        owns_process: bool = False,
        loads_in_background: bool = True,
    ) -> None:
        self.settings = settings
        self._true_problems = true_problems
        self._metrics_directory = metrics_directory
        self.owns_process = owns_process
        self._loads_in_background = loads_in_background
        self._frozen_surfaces: set[int] | None = None
        self.authenticator = Authenticator(always_required=settings.keys_required)
        self.n_open_streams = 0
        self.is_draining = False
        self.is_running = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the service within an ``async with`` block: start it, and stop it at the end.

        Raises
        ------
        BanditRankError
            If the store cannot be opened.
        RuntimeError
            If it runs already.
        """
        if self.is_running:
            raise RuntimeError("the service runs already: start each application once at a time")
        async with contextlib.AsyncExitStack() as stack:
            await self._start(stack)
            logger.info("service started", extra={"surfaces": len(self.engine.surfaces())})
            if self.authenticator.has_no_valid_key:
                logger.warning("API keys are required and none is valid: run banditrank keys create")
            self.is_running = True
            try:
                yield
            finally:
                self.is_running = False
                self.stopping.set()
        logger.info("service stopped")

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the store and start the background tasks; the stack stops them, the last first."""
        settings = self.settings
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        self.pools = ThreadPools()
        stack.push_async_callback(asyncio.to_thread, self.pools.close)
        store = await self.pools.control.run(settings.open_store)
        stack.push_async_callback(asyncio.to_thread, store.close)
        self.monitors = SurfaceMonitors(bucket_seconds=settings.bucket_seconds, problems=self._true_problems)
        stack.push_async_callback(asyncio.to_thread, self.monitors.close)
        self.engine = await self.pools.control.run(
            lambda: Engine(
                store,
                sync_seconds=settings.sync_seconds,
                deliver=self._deliver,
                observe=self.monitors.observe,
                loads_in_background=self._loads_in_background,
            )
        )
        stack.push_async_callback(self._close_engine)
        self.metrics = Metrics(self.engine, self._metrics_directory)
        await self.pools.control.run(self.engine.wait_until_loaded, _LOAD_SECONDS)
        self.health_monitor = HealthMonitor(self.engine, self.metrics)
        self.dashboard_cache = DashboardCache(
            self.engine, self.monitors, self.health_monitor, self.pools.dashboards, self.pools.assessments
        )
        self.readiness = ReadinessCheck(self.engine, self.pools.control)
        await self._load_keys()
        await stack.enter_async_context(self._background_tasks())

    async def _close_engine(self) -> None:
        """Commit all pending events."""
        await asyncio.to_thread(self.engine.close)
        if self._metrics_directory is not None:
            with contextlib.suppress(OSError):
                await self._share_metrics()

    def _deliver(self, calls: Sequence[tuple[CommitCallback, CommitOutcome]]) -> None:
        """Run commit callbacks in the event loop, one group at a time."""
        # No request is pending if the loop is closed.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(run_callbacks, calls)

    # Surfaces

    async def surface(self, name: str) -> SurfaceRuntime:
        """Return a surface.

        Raises
        ------
        HttpError
            A 404 if it does not exist.
        CompilingError
            If it is not loaded yet, because code is being compiled.
        """
        runtime = self.engine.loaded(name)
        if runtime is not None:
            return runtime
        if re.fullmatch(SURFACE_NAME, name):
            if self._loads_in_background and name in self.engine.compilations.surfaces:
                # Without a thread.
                raise CompilingError(name)
            with contextlib.suppress(UnknownNameError):
                return await self.pools.store.run(self.engine.surface, name)
        raise HttpError(UNKNOWN_SURFACE, f"surface {name[:80]!r} does not exist")

    # Metrics and the log

    def record_request(self, info: RequestInfo, status: int, seconds: float) -> None:
        """Count a request, and log it if all requests are logged."""
        self.metrics.record_request(info.operation_id, status, seconds)
        if self.settings.log_requests:
            fields = {"request_id": info.id, "operation": info.operation_id, "status": status}
            logger.info("request", extra={**fields, "milliseconds": round(seconds * 1e3, 2)})

    def log_failure(self, info: RequestInfo, error: Exception) -> None:
        """Log an error whose message is not sent to the client."""
        if is_internal(error):
            fields = {"request_id": info.id, "operation": info.operation_id}
            log_failure(logger, logging.ERROR, "request failed", error, **fields)

    def log_action(self, request: Request, action: str, **fields: object) -> None:
        """Log an administrative action with the id of the API key."""
        logger.info(action, extra={"request_id": request.id, "key_id": request.principal.key_id, **fields})

    # Background tasks

    @asynccontextmanager
    async def _background_tasks(self) -> AsyncIterator[None]:
        periodic: list[tuple[str, Callable[[], Awaitable[None]], float]] = [
            ("refresh API keys", self._refresh_keys, KEY_REFRESH_SECONDS),
            ("sample health", self._sample_health, SAMPLE_SECONDS),
        ]
        if self._metrics_directory is not None:
            periodic.append(("share metrics", self._share_metrics, SHARE_INTERVAL_SECONDS))
        if self.owns_process:
            periodic.append(("freeze objects", self._freeze_objects, _FREEZE_SECONDS))
            periodic.append(("trim heap", self._trim_heap, TRIM_SECONDS))
        tasks = [asyncio.create_task(run_periodically(*each)) for each in periodic]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _load_keys(self) -> None:
        self.authenticator.load(await self.pools.control.run(self.engine.store.api_keys))

    async def _refresh_keys(self) -> None:
        # The engine logs that the store is unavailable.
        with contextlib.suppress(StoreError):
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
