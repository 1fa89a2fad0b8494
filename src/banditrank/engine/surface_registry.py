"""Which surfaces of a store are at work in this process."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

from banditrank.engine.group_commit import SURFACE_DELETED
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.errors import UnknownRankingError, UnknownSurfaceError
from banditrank.storage.base import Store
from banditrank.storage.records import SurfaceRecord

_MOST_GONE = 10_000  # numbers of surfaces that are not looked for again


class SurfaceRegistry:
    """Surfaces, by name and by number.

    Parameters
    ----------
    store
        Where surfaces are looked for that are not at work yet.
    make
        Puts a surface to work.
    """

    def __init__(self, store: Store, make: Callable[[SurfaceRecord], SurfaceRuntime]) -> None:
        self._store = store
        self._make = make
        self._by_name: dict[str, SurfaceRuntime] = {}  # replaced as a whole
        self._by_number: dict[int, SurfaceRuntime] = {}
        self._being_made: dict[int, Future[SurfaceRuntime]] = {}  # by number, for who else asks for it
        self._gone: set[int] = set()  # numbers, which are not given to other surfaces
        self._lock = threading.Lock()

    def all(self) -> list[SurfaceRuntime]:
        """Return all surfaces, by name."""
        return [live for _, live in sorted(self._by_name.items())]

    def at_work(self) -> list[SurfaceRuntime]:
        """Return all surfaces, also those whose name was given to another since."""
        return list(self._by_number.values())

    def numbers(self) -> set[int]:
        """Return the numbers of all surfaces."""
        return set(self._by_number)

    def numbered(self, number: int) -> SurfaceRuntime | None:
        """Return the surface of a number if it is at work."""
        return self._by_number.get(number)

    def known(self, name: str) -> SurfaceRuntime | None:
        """Return a surface if it is at work, without asking the store."""
        return self._by_name.get(name)

    def known_number(self, number: int) -> SurfaceRuntime | None:
        """Return a surface if it is at work, or raise an error if it is known to be gone."""
        live = self._by_number.get(number)
        if live is None and number in self._gone:
            raise UnknownRankingError(SURFACE_DELETED)
        return live

    def find(self, name: str) -> SurfaceRuntime:
        """Return a surface, or raise an error if the store has none of this name."""
        live = self._by_name.get(name)
        return self.open(self.record(name)) if live is None else live  # another process may have made it

    def find_number(self, number: int) -> SurfaceRuntime:
        """Return the surface of a number, or raise an error if the store has none."""
        live = self.known_number(number)
        if live is not None:
            return live
        for record in self._store.surfaces():
            if record.number == number:
                return self.open(record)
        self._remember_gone(number)
        raise UnknownRankingError(SURFACE_DELETED)

    def record(self, name: str) -> SurfaceRecord:
        """Return what the store has under a name, or raise an error."""
        record = self._store.find_surface(name)
        if record is None:
            raise self.unknown(name)
        return record

    def unknown(self, name: str) -> UnknownSurfaceError:
        """Return the error for a name that no surface has."""
        return UnknownSurfaceError("surface", name, sorted(self._by_name.keys() - {name}))

    def open(self, record: SurfaceRecord) -> SurfaceRuntime:
        """Put a surface to work unless it is. That may take a minute, which is waited for by nobody else."""
        number = record.number
        with self._lock:
            live, others = self._by_number.get(number), self._being_made.get(number)
            if live is not None:
                return live
            if others is None:
                mine = self._being_made[number] = Future()
        if others is not None:
            return others.result()
        try:
            live = self._make(record)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            with self._lock:
                self._by_number[number] = live
                self._gone.discard(number)
                self._name_all()
            mine.set_result(live)
            return live
        finally:
            del self._being_made[number]

    def renew(self, live: SurfaceRuntime) -> None:
        """Let a surface go over to the definition that the store has."""
        record = self._store.find_surface(live.surface.name)
        if record is not None and record.number == live.number:
            live.adopt(record)

    def drop(self, live: SurfaceRuntime) -> None:
        """Let a surface go that was deleted."""
        with self._lock:
            live.drop()
            self._by_number.pop(live.number, None)
            self._remember_gone(live.number)
            self._name_all()

    def _name_all(self) -> None:
        """Find surfaces by name: of several, the one that was made last; the others were deleted before."""
        self._by_name = {live.surface.name: live for _, live in sorted(self._by_number.items())}

    def _remember_gone(self, number: int) -> None:
        if len(self._gone) >= _MOST_GONE:
            self._gone.clear()
        self._gone.add(number)
