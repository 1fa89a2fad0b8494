"""The thread that keeps surfaces up to date with the store, and those that it hands work to."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from banditrank.engine.live_surface import LiveSurface
from banditrank.engine.registry import Registry
from banditrank.errors import StoreError
from banditrank.storage.base import Store

_TICK_SECONDS = 0.02
_TENDERS = 4  # threads that make views: one surface's costly solver does not hold up the others'

logger = logging.getLogger(__name__)


class Keeper:
    """Looks for what other processes wrote to a store, and has surfaces tended when that is due.

    Parameters
    ----------
    store
        The store.
    registry
        Its surfaces.
    sync_seconds
        How often to look.

    Attributes
    ----------
    last_sync
        When it was looked, by a clock that is never set.
    """

    def __init__(self, store: Store, registry: Registry, *, sync_seconds: float) -> None:
        self._store = store
        self._registry = registry
        self._sync_seconds = sync_seconds
        self.last_sync = time.monotonic()
        self._stop = threading.Event()
        self._tenders = ThreadPoolExecutor(_TENDERS, thread_name_prefix="banditrank-tender")
        self._being_tended: set[int] = set()
        self._thread = threading.Thread(target=self._keep, name="banditrank-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what is under way, and stop."""
        self._stop.set()
        self._thread.join()
        self._tenders.shutdown()

    def _keep(self) -> None:
        next_sync, failing = 0.0, False
        while not self._stop.wait(_TICK_SECONDS):
            try:
                if time.monotonic() >= next_sync:
                    next_sync = time.monotonic() + self._sync_seconds
                    self._sync()
                    self.last_sync = time.monotonic()
                failing = False
            except Exception as error:  # whatever it is, it may pass
                if not failing:
                    told = isinstance(error, StoreError)
                    logger.warning("the store cannot be read: %s", error, exc_info=not told)
                failing = True
            for live in self._registry.at_work():
                if live.number not in self._being_tended and live.is_due():
                    self._being_tended.add(live.number)
                    self._tenders.submit(self._tend, live)

    def _sync(self) -> None:
        known = self._registry.at_work()  # before it is asked which there are: none is new since
        versions = self._store.versions()
        for live in known:
            theirs = versions.get(live.number)
            if theirs is None:
                self._registry.drop(live)
                continue
            live.catch_up(theirs.version)
            if theirs.revision > live.revision:
                self._registry.renew(live)
        numbers = {live.number for live in self._registry.at_work()}
        for record in self._store.surfaces() if versions.keys() - numbers else ():
            self._registry.open(record)

    def _tend(self, live: LiveSurface) -> None:
        try:
            live.tend()
        finally:
            self._being_tended.discard(live.number)
