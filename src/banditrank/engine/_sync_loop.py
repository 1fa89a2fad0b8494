"""The thread that syncs surfaces with the store, and runs their background tasks."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait

from banditrank.engine._due_queue import DueQueue
from banditrank.engine._failure_log import log_failure
from banditrank.engine._periodic_task import Backoff
from banditrank.engine._surface_registry import SurfaceRegistry
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import StoreUnavailableError
from banditrank.storage._base import Store
from banditrank.storage._records import SurfaceRecord, Versions

IDLE_SECONDS = 30.0
"""Time without use after which an engine that syncs on demand is idle."""

_GATHERING_SECONDS = 0.02  # batch window for changes of surfaces
_MAX_WAIT_SECONDS = 0.25  # while polling, to notice that the clock was set
_CLOCK_STEP_SECONDS = 1.0  # smallest step that counts as setting the clock
_PURGE_SECONDS = 60.0
_TASK_THREADS = 4  # so that one surface's slow solver does not delay the others
_SYNC_THREADS = 4  # so that one surface's large change does not delay the others

logger = logging.getLogger(__name__)


class SyncLoop:
    """Loads the surfaces of a store, applies what other processes wrote, and runs tasks that are due.

    The thread itself does no work that grows with a surface's size, and none for unchanged surfaces.

    Parameters
    ----------
    store
        The store.
    registry
        Its loaded surfaces.
    queue
        When each of them has a task due.
    load_pool
        Threads that load surfaces, so that a compilation does not delay the tasks of others; closed with
        the loop.
    sync_seconds
        Period of the sync.
    polls
        Whether to sync all the time. If not, only after `touch`: an unused engine then uses no
        processor time.
    clock
        Returns the time in seconds since 1970.

    Attributes
    ----------
    last_sync
        Time of the latest sync, by the monotonic clock.
    """

    def __init__(
        self,
        store: Store,
        registry: SurfaceRegistry,
        queue: DueQueue[SurfaceRuntime],
        load_pool: Executor,
        *,
        sync_seconds: float,
        polls: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._registry = registry
        self._queue = queue
        self._load_pool = load_pool
        self._sync_seconds = sync_seconds
        self._polls = polls
        self._clock = clock
        self.last_sync = self._used_at = time.monotonic()
        self._stop = threading.Event()
        self._task_pool = ThreadPoolExecutor(_TASK_THREADS, thread_name_prefix="banditrank-task")
        self._sync_pool = ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="banditrank-sync")
        self._syncing: set[int] = set()  # ids of surfaces
        self._running: set[int] = set()
        self._backoffs: dict[tuple[int, str], Backoff] = {}  # by id and name of a surface
        self._unavailable: StoreUnavailableError | None = None  # raised in a thread of the pool
        self._versions: dict[int, Versions] = {}  # at the latest sync
        self._is_in_sync = False  # with these versions
        self._next_purge = 0.0
        self._loaded = threading.Event()  # once each surface of the start was loaded, or failed to load
        self._thread = threading.Thread(target=self._run, name="banditrank-sync-loop", daemon=True)

    def start(self, *, in_background: bool = False) -> None:
        """Load the surfaces of the store, and start the thread.

        Parameters
        ----------
        in_background
            Whether to return before the surfaces are loaded.
        """
        records = self._store.surfaces()
        if in_background:
            self._syncing |= {record.surface_id for record in records}
            loads = [
                self._load_pool.submit(self._open, record, self._backoff(record.surface_id, record.name))
                for record in records
            ]
            threading.Thread(
                target=self._wait_for_loads, args=(loads,), name="banditrank-loads", daemon=True
            ).start()
        else:
            for record in records:
                with self._backoff(record.surface_id, record.name):
                    self._registry.open(record)
            self._loaded.set()
        self._thread.start()

    @property
    def has_loaded(self) -> bool:
        """Whether the surfaces that the store had at the start are loaded, or could not be."""
        return self._loaded.is_set()

    def wait_until_loaded(self, timeout_seconds: float) -> bool:
        """Wait for `has_loaded` for some time, and return it."""
        return self._loaded.wait(timeout_seconds)

    def _wait_for_loads(self, loads: "Sequence[Future[None]]") -> None:
        start = time.monotonic()
        wait(loads)
        self._loaded.set()
        if loads:
            seconds = round(time.monotonic() - start, 1)
            logger.info("surfaces loaded", extra={"surfaces": len(self._registry.ids()), "seconds": seconds})

    @property
    def errors(self) -> dict[str, str]:
        """Errors of surfaces that are out of sync with the store, by name."""
        backoffs = self._backoffs.copy()
        return {name: one.error for (_, name), one in backoffs.items() if one.error is not None}

    @property
    def is_idle(self) -> bool:
        """Whether the engine syncs on demand, and was not used for a while."""
        return not self._polls and time.monotonic() - self._used_at >= IDLE_SECONDS

    def touch(self) -> None:
        """Register that the engine is used: sync if the latest sync is too old."""
        now = time.monotonic()
        was_idle = self.is_idle
        self._used_at = now
        if was_idle:
            self._mark_all()
        if not self._polls and now - self.last_sync >= self._sync_seconds:
            self._queue.wake()

    def close(self) -> None:
        """Finish running work, and stop."""
        self._stop.set()
        self._queue.interrupt()
        self._thread.join()
        for pool in (self._sync_pool, self._task_pool, self._load_pool):
            pool.shutdown(cancel_futures=True)

    def _run(self) -> None:
        self._stop.wait(_GATHERING_SECONDS)  # surfaces were opened just now
        next_sync, is_failing = 0.0, False
        offset = self._clock() - time.monotonic()
        while not self._stop.is_set():
            if time.monotonic() >= next_sync:
                next_sync = time.monotonic() + self._sync_seconds
                try:
                    self._sync()
                    self.last_sync = time.monotonic()
                    is_failing = False
                except Exception as error:  # noqa: BLE001 - the next attempt may succeed
                    if not is_failing:
                        log_failure(logger, logging.WARNING, "store sync failed", error)
                    is_failing = True
            if abs(self._clock() - time.monotonic() - offset) >= _CLOCK_STEP_SECONDS:
                offset = self._clock() - time.monotonic()
                self._mark_all()
            try:
                self._run_due_tasks()
            except Exception:  # the thread must survive: without it nothing is synced or refreshed
                logger.exception("task scheduling failed")
            if self._queue.wait(self._wait_seconds(next_sync, is_failing=is_failing)):
                self._stop.wait(_GATHERING_SECONDS)

    def _wait_seconds(self, next_sync: float, *, is_failing: bool) -> float | None:
        """Return the maximum wait for a task; None for no limit."""
        if self._polls:
            return min(next_sync - time.monotonic(), _MAX_WAIT_SECONDS)
        has_work = is_failing or not self._is_in_sync or not self._next_purge
        if has_work or self._used_at >= self.last_sync:
            return next_sync - time.monotonic()
        return None

    def _mark_all(self) -> None:
        for runtime in self._registry.all():
            self._queue.mark(runtime)

    # Tasks

    def _run_due_tasks(self) -> None:
        for runtime in self._queue.take_due():
            if runtime.surface_id not in self._running and not runtime.is_deleted:
                self._running.add(runtime.surface_id)
                self._task_pool.submit(self._run_tasks, runtime)

    def _run_tasks(self, runtime: SurfaceRuntime) -> None:
        try:
            runtime.run_due_tasks()
        finally:
            self._running.discard(runtime.surface_id)
            self._queue.mark(runtime)

    # Sync

    def _sync(self) -> None:
        loaded = self._registry.ids()  # before the versions are read, which include all of these
        versions = self._store.versions()
        if not self._is_in_sync or versions != self._versions or loaded != versions.keys():
            for surface_id in loaded - versions.keys():
                if (runtime := self._registry.loaded_id(surface_id)) is not None:
                    self._registry.remove(runtime)
            self._is_in_sync = self._start_syncing(versions)
        has_deleted = not self._versions.keys() <= versions.keys()
        self._versions = versions
        if has_deleted or time.monotonic() >= self._next_purge:
            self._next_purge = 0.0 if self._store.purge_deleted() else time.monotonic() + _PURGE_SECONDS
        unavailable, self._unavailable = self._unavailable, None
        if unavailable is not None:
            raise unavailable

    def _start_syncing(self, versions: dict[int, Versions]) -> bool:
        """Load and update surfaces in the pools; return whether all are in sync already."""
        self._backoffs = {
            key: one
            for key, one in self._backoffs.items()
            if key[0] in versions and (one.error or not one.is_due or key[0] in self._syncing)
        }
        postponed = {surface_id for (surface_id, _), one in self._backoffs.items() if not one.is_due}
        missing, is_behind = set(), False
        for surface_id, latest in versions.items():
            runtime = self._registry.loaded_id(surface_id)
            if runtime is None:
                missing.add(surface_id)
            elif latest.version > runtime.version or latest.revision > runtime.revision:
                is_behind = True
                if surface_id not in self._syncing and surface_id not in postponed:
                    self._syncing.add(surface_id)
                    backoff = self._backoff(surface_id, runtime.surface.name)
                    self._sync_pool.submit(self._catch_up, runtime, latest, backoff)
        to_open = missing - self._syncing - postponed
        for record in self._store.surfaces() if to_open else ():
            if record.surface_id in to_open:
                self._syncing.add(record.surface_id)
                self._load_pool.submit(self._open, record, self._backoff(record.surface_id, record.name))
        return not (missing or is_behind or self._backoffs)

    def _backoff(self, surface_id: int, name: str) -> Backoff:
        return self._backoffs.setdefault(
            (surface_id, name), Backoff("surface out of sync with the store", surface=name)
        )

    def _catch_up(self, runtime: SurfaceRuntime, latest: Versions, backoff: Backoff) -> None:
        try:
            with backoff:
                runtime.catch_up(latest.version)
                if latest.revision > runtime.revision:
                    self._registry.update_definition(runtime)
        except StoreUnavailableError as error:
            self._unavailable = error
        finally:
            self._syncing.discard(runtime.surface_id)

    def _open(self, record: SurfaceRecord, backoff: Backoff) -> None:
        try:
            with backoff:
                self._registry.open(record)
        except StoreUnavailableError as error:
            self._unavailable = error
        finally:
            self._syncing.discard(record.surface_id)
