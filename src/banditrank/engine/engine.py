"""All surfaces of a store, at work in this process."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

from banditrank.engine.journal import Answer, Deliver, Journal
from banditrank.engine.live_surface import LiveSurface
from banditrank.engine.surface import Surface
from banditrank.engine.tokens import RandomBytes, Signer, Ticket, seeded_bytes
from banditrank.engine.watch import Watch
from banditrank.errors import (
    BanditRankError,
    ContradictionError,
    InvalidInputError,
    LapsedRankingError,
    StoreError,
    StoreUnavailableError,
    UnknownNameError,
    UnknownRankingError,
)
from banditrank.model.problem import Problem
from banditrank.storage.base import Store
from banditrank.storage.records import Change, SurfaceRecord, Verdict

_TICK_SECONDS = 0.02
_TENDERS = 4  # threads that make views: one surface's costly solver does not hold up the others'
_MOST_ATTEMPTS = 20  # to change a definition while others change it, too
_SURFACE_GONE = "the surface of the ranking was deleted"
_MOST_GONE = 10_000  # numbers of surfaces that are not looked for again

logger = logging.getLogger(__name__)


class Engine:
    """Surfaces, the journal that writes for all of them, and the thread that keeps them up to date.

    Parameters
    ----------
    store
        Where everything is kept. It is not closed with the engine.
    sync_seconds
        How often to look for what other processes wrote to the store.
    clock
        Gives the time in seconds since 1970.
    deliver
        How those who wait for a commit are called back; see `Journal`.
    random_bytes
        Where the randomness of rankings comes from: of their ids, and of policies that explore. One of its
        own if left out.
    bucket_seconds
        Width of the first buckets of a surface's series.
    truths
        The true worlds of surfaces whose users are simulated, by name.
    """

    def __init__(
        self,
        store: Store,
        *,
        sync_seconds: float = 0.25,
        clock: Callable[[], float] = time.time,
        deliver: Deliver | None = None,
        random_bytes: RandomBytes | None = None,
        bucket_seconds: float = 60.0,
        truths: Mapping[str, Problem] = MappingProxyType({}),
    ) -> None:
        self.store = store
        self._bucket_seconds = bucket_seconds
        self._truths = truths
        self.sync_seconds = sync_seconds
        self._clock = clock
        self._random_bytes = seeded_bytes() if random_bytes is None else random_bytes
        self._signer = Signer(store.secret())
        self._surfaces: dict[str, LiveSurface] = {}
        self._by_number: dict[int, LiveSurface] = {}
        self._gone: set[int] = set()  # numbers, which are not given to other surfaces
        self._opening = threading.RLock()
        self.journal = Journal(store, learn=self._learn, deliver=deliver, clock=clock)
        self.last_sync = time.monotonic()
        self._stop = threading.Event()
        self._tenders = ThreadPoolExecutor(_TENDERS, thread_name_prefix="banditrank-tender")
        self._being_tended: set[int] = set()
        try:
            for record in store.surfaces():
                self._open(record)
        except BaseException:
            self.journal.close()
            raise
        self._keeper = threading.Thread(target=self._keep, name="banditrank-keeper", daemon=True)
        self._keeper.start()

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._clock()

    # Surfaces

    def surfaces(self) -> list[LiveSurface]:
        """Return all surfaces, by name."""
        return [live for _, live in sorted(self._surfaces.copy().items())]

    def known(self, name: str) -> LiveSurface | None:
        """Return a surface if it is at work in this process, without asking the store."""
        return self._surfaces.get(name)

    def surface(self, name: str) -> LiveSurface:
        """Return a surface, or raise an error."""
        found = self._surfaces.get(name)
        if found is None:
            record = self.store.find_surface(name)  # another process may have made it
            if record is None:
                raise UnknownNameError("surface", name, sorted(self._surfaces))
            found = self._open(record)
        return found

    def create(self, surface: Surface) -> LiveSurface:
        """Create a surface, or raise an error if its name is taken."""
        return self._open(self.store.create_surface(surface.name, surface.definition))

    def change(self, name: str, change: Callable[[Surface], Surface]) -> LiveSurface:
        """Change a surface's definition, also while others do.

        Parameters
        ----------
        name
            The surface's.
        change
            Returns what it is to become, given what it is.
        """
        for _ in range(_MOST_ATTEMPTS):
            record = self.store.find_surface(name)
            if record is None:
                raise UnknownNameError("surface", name, sorted(self._surfaces))
            present = Surface.from_definition(record.definition)
            wanted = present.successor(change(present))
            live = self._open(record)  # another one if it was deleted and made anew
            changed = record
            if wanted != present:
                updated = self.store.update_surface(name, wanted.definition, revision=record.revision)
                if updated is None:
                    continue
                changed = updated
            live.adopt(changed)
            live.refresh()
            return live
        raise StoreUnavailableError(f"surface {name} is being changed by others all the time")

    def delete(self, name: str) -> None:
        """Delete a surface and all that was learned, or raise an error if there is none."""
        live = self.surface(name)
        if not self.store.delete_surface(name):
            raise UnknownNameError("surface", name, sorted(self._surfaces))
        self._drop(live)

    # Feedback

    def ticket(self, ranking_id: str) -> tuple[LiveSurface, Ticket]:
        """Return the surface of a ranking and what its id says, or raise an error if it was not given out."""
        ticket = self._read(ranking_id)
        live = self._by_number.get(ticket.shown.surface) or self._find_number(ticket.shown.surface)
        if ticket.revision > live.revision:  # given out by a replica that knows more items
            self._renew(live)
        return live, live.shapes.check(ticket)

    def known_ticket(self, ranking_id: str) -> tuple[LiveSurface, Ticket] | None:
        """Do what `ticket` does, but without asking the store: return None if it must be asked."""
        ticket = self._read(ranking_id)
        number = ticket.shown.surface
        live = self._by_number.get(number)
        if live is None:
            if number in self._gone:
                raise UnknownRankingError(_SURFACE_GONE)
            return None
        return (live, live.shapes.check(ticket)) if live.shapes.remembers(ticket.revision) else None

    def feedback(self, ranking_id: str, *, clicked: str | None = None, reward: float = 1.0) -> str:
        """Count feedback, and wait until that is durable.

        Returns
        -------
        str
            ``counted``, or ``repeated`` if the same feedback was counted before.
        """
        live, ticket = self.ticket(ranking_id)
        entry = live.entry(ticket, clicked, reward)
        if live.has_lapsed(ticket):
            live.check_lapsed(entry)
            return str(Verdict.REPEATED)
        answers: list[Answer] = []
        finished = threading.Event()

        def answered(answer: Answer) -> None:
            answers.append(answer)
            finished.set()

        self.journal.settle(entry, answered)
        finished.wait()
        return verdict_told(answers[0])

    def _read(self, ranking_id: str) -> Ticket:
        try:
            return self._signer.read(ranking_id)
        except InvalidInputError as error:
            raise UnknownRankingError(str(error)) from None

    def close(self) -> None:
        """Write what is waiting, save snapshots, and stop."""
        self._stop.set()
        self._keeper.join()
        self._tenders.shutdown()
        self.journal.close()
        for live in self.surfaces():
            try:
                live.save()
            except StoreError:
                logger.warning("no snapshot of surface %s was saved", live.surface.name)

    def _open(self, record: SurfaceRecord) -> LiveSurface:
        with self._opening:
            live = self._by_number.get(record.number)
            if live is None:
                watch = Watch(
                    Surface.from_definition(record.definition),
                    self._clock,
                    bucket_seconds=self._bucket_seconds,
                    problem=self._truths.get(record.name),
                )
                live = LiveSurface(
                    record, self.store, self.journal, self._signer, self._clock, self._random_bytes, watch
                )
                self._by_number[live.number] = self._surfaces[record.name] = live
                self._gone.discard(live.number)
            return live

    def _drop(self, live: LiveSurface) -> None:
        with self._opening:
            live.drop()
            self._by_number.pop(live.number, None)
            self._remember_gone(live.number)
            if self._surfaces.get(live.surface.name) is live:
                del self._surfaces[live.surface.name]

    def _renew(self, live: LiveSurface) -> None:
        record = self.store.find_surface(live.surface.name)
        if record is not None and record.number == live.number:
            live.adopt(record)

    def _find_number(self, number: int) -> LiveSurface:
        for record in self.store.surfaces() if number not in self._gone else ():
            if record.number == number:
                return self._open(record)
        self._remember_gone(number)
        raise UnknownRankingError(_SURFACE_GONE)

    def _remember_gone(self, number: int) -> None:
        if len(self._gone) >= _MOST_GONE:
            self._gone.clear()
        self._gone.add(number)

    def _learn(self, change: Change) -> None:
        live = self._by_number.get(change.surface)
        if live is not None:
            live.learn(change)

    # Keeping up to date

    def _keep(self) -> None:
        next_sync, failing = 0.0, False
        while not self._stop.wait(_TICK_SECONDS):
            try:
                if time.monotonic() >= next_sync:
                    next_sync = time.monotonic() + self.sync_seconds
                    self._sync()
                    self.last_sync = time.monotonic()
                failing = False
            except Exception as error:  # whatever it is, it may pass
                if not failing:
                    told = isinstance(error, StoreError)
                    logger.warning("the store cannot be read: %s", error, exc_info=not told)
                failing = True
            for live in list(self._by_number.values()):
                if live.number not in self._being_tended and live.is_due():
                    self._being_tended.add(live.number)
                    self._tenders.submit(self._tend, live)

    def _sync(self) -> None:
        known = list(self._by_number.values())  # before it is asked which there are: none is new since
        versions = self.store.versions()
        for live in known:
            theirs = versions.get(live.number)
            if theirs is None:
                self._drop(live)
                continue
            live.catch_up(theirs.version)
            if theirs.revision > live.revision:
                self._renew(live)
        for record in self.store.surfaces() if versions.keys() - self._by_number.keys() else ():
            self._open(record)

    def _tend(self, live: LiveSurface) -> None:
        try:
            live.tend()
        except StoreUnavailableError:
            pass  # the keeper says so
        except Exception:
            logger.exception("surface %s could not be tended", live.surface.name)
        finally:
            self._being_tended.discard(live.number)


def verdict_told(answer: Answer) -> str:
    """Return what whoever gave feedback is told, or raise the error that it is."""
    if isinstance(answer, BanditRankError):
        raise answer
    if answer is Verdict.CONTRADICTED:
        raise ContradictionError("another feedback was counted for this ranking before")
    if answer is Verdict.FORGOTTEN:
        raise LapsedRankingError("the ranking's attribution window closed long ago")
    if answer is Verdict.GONE:
        raise UnknownRankingError("the surface of the ranking was deleted")
    return str(answer)
