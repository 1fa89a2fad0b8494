"""The thread that keeps surfaces as the store has them, and those that it hands work to."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from banditrank.engine.backoff import Backoff
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.engine.surface_registry import SurfaceRegistry
from banditrank.engine.due_queue import DueQueue
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage.base import Store
from banditrank.storage.records import SurfaceRecord, Versions

_GATHERING_SECONDS = 0.02  # batch window for changes of surfaces
_MAX_WAIT_SECONDS = 0.25  # upper bound, to notice that the clock was set
_CLOCK_STEP_SECONDS = 1.0  # smallest step that counts as setting the clock
_TIDY_SECONDS = 60.0
_TENDERS = 4  # threads that make views: one surface's costly solver does not hold up the others'
_SYNCERS = 4  # threads that take in changes: a large one does not hold up the others'

logger = logging.getLogger(__name__)


class SyncLoop:
    """Puts the surfaces of a store to work, looks for what other processes wrote, and has what is due done.

    The thread itself does nothing that takes longer for a larger surface, and nothing at all for a surface
    without changes.

    Parameters
    ----------
    store
        The store.
    registry
        Its surfaces.
    schedule
        When there is work to do for each of them.
    sync_seconds
        How often to look.
    clock
        Returns the time in seconds since 1970.

    Attributes
    ----------
    last_sync
        When it was looked, by a clock that is never set.
    """

    def __init__(
        self,
        store: Store,
        registry: SurfaceRegistry,
        schedule: DueQueue[SurfaceRuntime],
        *,
        sync_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._registry = registry
        self._schedule = schedule
        self._sync_seconds = sync_seconds
        self._clock = clock
        self.last_sync = time.monotonic()
        self._stop = threading.Event()
        self._tenders = ThreadPoolExecutor(_TENDERS, thread_name_prefix="banditrank-tender")
        self._syncers = ThreadPoolExecutor(_SYNCERS, thread_name_prefix="banditrank-syncer")
        self._being_synced: set[int] = set()
        self._being_tended: set[int] = set()
        self._attempts: dict[tuple[int, str], Backoff] = {}  # to have each surface as the store has it
        self._unavailable: StoreUnavailableError | None = None  # raised in a syncer
        self._versions: dict[int, Versions] = {}  # at the latest sync
        self._is_in_sync = False  # as of these versions
        self._next_tidy = 0.0
        for record in store.surfaces():
            with self._attempt(record.number, record.name):
                registry.open(record)
        self._thread = threading.Thread(target=self._keep, name="banditrank-keeper", daemon=True)
        self._thread.start()

    @property
    def unreadable(self) -> dict[str, str]:
        """What is wrong with surfaces that are not at work as they are in the store, by name."""
        attempts = self._attempts.copy()
        return {name: one.trouble for (_, name), one in attempts.items() if one.trouble is not None}

    def close(self) -> None:
        """Finish what is under way, and stop."""
        self._stop.set()
        self._schedule.interrupt()
        self._thread.join()
        for pool in (self._syncers, self._tenders):
            pool.shutdown(cancel_futures=True)

    def _keep(self) -> None:
        self._stop.wait(_GATHERING_SECONDS)  # surfaces were opened just now
        next_sync, failing = 0.0, False
        offset = self._clock() - time.monotonic()
        while not self._stop.is_set():
            if time.monotonic() >= next_sync:
                next_sync = time.monotonic() + self._sync_seconds
                try:
                    self._sync()
                    self.last_sync = time.monotonic()
                    failing = False
                except Exception as error:  # whatever it is, it may pass
                    if not failing:
                        told = isinstance(error, StoreError)
                        logger.warning("store sync failed: %s", error, exc_info=not told)
                    failing = True
            if abs(self._clock() - time.monotonic() - offset) >= _CLOCK_STEP_SECONDS:
                offset = self._clock() - time.monotonic()
                for live in self._registry.at_work():
                    self._schedule.mark(live)
            try:
                self._tend_due()
            except Exception:  # the thread must survive: without it nothing is synced or refreshed
                logger.exception("scheduling failed")
            if self._schedule.wait(min(next_sync - time.monotonic(), _MAX_WAIT_SECONDS)):
                self._stop.wait(_GATHERING_SECONDS)

    # Tending

    def _tend_due(self) -> None:
        for live in self._schedule.take_due():
            if live.number not in self._being_tended and not live.is_gone:
                self._being_tended.add(live.number)
                self._tenders.submit(self._tend, live)

    def _tend(self, live: SurfaceRuntime) -> None:
        try:
            live.tend()
        finally:
            self._being_tended.discard(live.number)
            self._schedule.mark(live)

    # Syncing

    def _sync(self) -> None:
        known = self._registry.numbers()  # before the store is asked which there are: none is new since
        versions = self._store.versions()
        if not self._is_in_sync or versions != self._versions or known != versions.keys():
            for number in known - versions.keys():
                if (live := self._registry.numbered(number)) is not None:
                    self._registry.drop(live)
            self._is_in_sync = self._bring_in_sync(versions)
        deleted = not self._versions.keys() <= versions.keys()
        self._versions = versions
        if deleted or time.monotonic() >= self._next_tidy:
            self._next_tidy = 0.0 if self._store.purge_deleted() else time.monotonic() + _TIDY_SECONDS
        unavailable, self._unavailable = self._unavailable, None
        if unavailable is not None:
            raise unavailable

    def _bring_in_sync(self, versions: dict[int, Versions]) -> bool:
        """Have surfaces opened and brought up to date by other threads; return whether none needs it."""
        self._attempts = {
            key: one
            for key, one in self._attempts.items()
            if key[0] in versions and (one.trouble or not one.is_due or key[0] in self._being_synced)
        }
        postponed = {number for (number, _), one in self._attempts.items() if not one.is_due}
        missing, behind = set(), False
        for number, theirs in versions.items():
            live = self._registry.numbered(number)
            if live is None:
                missing.add(number)
            elif theirs.version > live.version or theirs.revision > live.revision:
                behind = True
                if number not in self._being_synced and number not in postponed:
                    self._being_synced.add(number)
                    attempt = self._attempt(number, live.surface.name)
                    self._syncers.submit(self._catch_up, live, theirs, attempt)
        to_open = missing - self._being_synced - postponed
        for record in self._store.surfaces() if to_open else ():
            if record.number in to_open:
                self._being_synced.add(record.number)
                self._tenders.submit(self._open, record, self._attempt(record.number, record.name))
        return not (missing or behind or self._attempts)

    def _attempt(self, number: int, name: str) -> Backoff:
        said = f"surface {name} is not at work as it is in the store"
        return self._attempts.setdefault((number, name), Backoff(said))

    def _catch_up(self, live: SurfaceRuntime, theirs: Versions, attempt: Backoff) -> None:
        try:
            with attempt:
                live.catch_up(theirs.version)
                if theirs.revision > live.revision:
                    self._registry.renew(live)
        except StoreUnavailableError as error:
            self._unavailable = error
        finally:
            self._being_synced.discard(live.number)

    def _open(self, record: SurfaceRecord, attempt: Backoff) -> None:
        try:
            with attempt:
                self._registry.open(record)
        except StoreUnavailableError as error:
            self._unavailable = error
        finally:
            self._being_synced.discard(record.number)
