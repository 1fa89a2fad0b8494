"""The thread that keeps surfaces as the store has them, and those that it hands work to."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from banditrank.engine.attempts import Attempts
from banditrank.engine.live_surface import LiveSurface
from banditrank.engine.registry import Registry
from banditrank.errors import StoreError, StoreUnavailableError
from banditrank.storage.base import Store
from banditrank.storage.records import SurfaceRecord, Versions

_TICK_SECONDS = 0.02
_TENDERS = 4  # threads that make views: one surface's costly solver does not hold up the others'

logger = logging.getLogger(__name__)


class Keeper:
    """Puts the surfaces of a store to work, looks for what other processes wrote, and has what is due done.

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
        self._being_opened: set[int] = set()
        self._being_tended: set[int] = set()
        self._attempts: dict[tuple[int, str], Attempts] = {}  # to have each surface as the store has it
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
        self._thread.join()
        self._tenders.shutdown(cancel_futures=True)

    def _keep(self) -> None:
        next_sync, failing = 0.0, False
        while not self._stop.wait(_TICK_SECONDS):
            try:
                if time.monotonic() >= next_sync:
                    next_sync = time.monotonic() + self._sync_seconds
                    self._sync()
                    self.last_sync = time.monotonic()
                    self._store.tidy()
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
            else:
                self._catch_up(live, theirs)
        self._attempts = {key: one for key, one in self._attempts.items() if key[0] in versions}
        waiting = {number for (number, _), one in self._attempts.items() if not one.is_due}
        at_work = {live.number for live in self._registry.at_work()}
        missing = versions.keys() - at_work - self._being_opened - waiting
        for record in self._store.surfaces() if missing else ():
            if record.number in missing:
                self._being_opened.add(record.number)
                self._tenders.submit(self._open, record, self._attempt(record.number, record.name))

    def _catch_up(self, live: LiveSurface, theirs: Versions) -> None:
        attempt = self._attempt(live.number, live.surface.name)
        if attempt.is_due:
            with attempt:
                live.catch_up(theirs.version)
                if theirs.revision > live.revision:
                    self._registry.renew(live)

    def _attempt(self, number: int, name: str) -> Attempts:
        said = f"surface {name} is not at work as it is in the store"
        return self._attempts.setdefault((number, name), Attempts(said))

    def _open(self, record: SurfaceRecord, attempt: Attempts) -> None:
        try:
            with suppress(StoreUnavailableError), attempt:  # looking for versions fails as well, and says so
                self._registry.open(record)
        finally:
            self._being_opened.discard(record.number)

    def _tend(self, live: LiveSurface) -> None:
        try:
            live.tend()
        finally:
            self._being_tended.discard(live.number)
