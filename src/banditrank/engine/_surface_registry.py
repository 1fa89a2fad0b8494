"""The surfaces of a store that are loaded in this process."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait

from banditrank.engine._compilations import Compilations
from banditrank.engine._group_commit import SURFACE_DELETED
from banditrank.engine._surface import Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import CompilingError, UnknownRankingError
from banditrank.storage._base import Store
from banditrank.storage._records import SurfaceRecord

_POLL_SECONDS = 0.05  # of a load that may have to wait for the compiler
_MAX_DELETED = 10_000  # ids of deleted surfaces, which are not looked up again


class SurfaceRegistry:
    """Loaded surfaces, by name and by id. Thread-safe.

    Parameters
    ----------
    store
        Where surfaces that are not loaded are looked up.
    load
        Loads a surface.
    compilations
        Surfaces whose code is being compiled.
    load_pool
        Threads that load the surfaces that `find` and `find_for_ranking` look up. These raise an error then
        instead of waiting for the compiler. None to load in the caller's thread.
    """

    def __init__(
        self,
        store: Store,
        load: Callable[[SurfaceRecord], SurfaceRuntime],
        compilations: Compilations,
        load_pool: Executor | None = None,
    ) -> None:
        self._store = store
        self._load = load
        self._compilations = compilations
        self._load_pool = load_pool
        self._by_name: dict[str, SurfaceRuntime] = {}  # replaced as a whole
        self._by_id: dict[int, SurfaceRuntime] = {}
        self._loading: dict[int, Future[SurfaceRuntime]] = {}
        self._submitted: dict[int, Future[SurfaceRuntime]] = {}  # to the pool
        self._deleted_ids: set[int] = set()  # ids are never reused
        self._lock = threading.Lock()

    def by_name(self) -> list[SurfaceRuntime]:
        """Return the loaded surfaces, sorted by name."""
        return [runtime for _, runtime in sorted(self._by_name.items())]

    def all(self) -> list[SurfaceRuntime]:
        """Return the loaded surfaces, including those whose name now belongs to another."""
        return list(self._by_id.values())

    def ids(self) -> set[int]:
        """Return the ids of the loaded surfaces."""
        return set(self._by_id)

    def loaded(self, name: str) -> SurfaceRuntime | None:
        """Return a surface if it is loaded, without reading the store."""
        return self._by_name.get(name)

    def loaded_id(self, surface_id: int) -> SurfaceRuntime | None:
        """Return a surface if it is loaded, without reading the store."""
        return self._by_id.get(surface_id)

    def loaded_for_ranking(self, surface_id: int) -> SurfaceRuntime | None:
        """Return a ranking's surface if it is loaded, without reading the store.

        Raises
        ------
        UnknownRankingError
            If the surface was deleted.
        """
        runtime = self._by_id.get(surface_id)
        if runtime is None and surface_id in self._deleted_ids:
            raise UnknownRankingError(SURFACE_DELETED)
        return runtime

    def find(self, name: str) -> SurfaceRuntime:
        """Return a surface, loaded from the store if another process created it.

        Raises
        ------
        UnknownSurfaceError
            If the store has no surface of this name.
        CompilingError
            If there is a `load_pool`, and the surface is not loaded because code is being compiled.
        """
        runtime = self._by_name.get(name)
        return self._open_soon(self.record(name)) if runtime is None else runtime

    def find_for_ranking(self, surface_id: int) -> SurfaceRuntime:
        """Return a ranking's surface, loaded from the store if need be.

        Raises
        ------
        UnknownRankingError
            If the surface was deleted.
        CompilingError
            As for `find`.
        """
        runtime = self.loaded_for_ranking(surface_id)
        if runtime is not None:
            return runtime
        for record in self._store.surfaces():
            if record.surface_id == surface_id:
                return self._open_soon(record)
        self._remember_deleted(surface_id)
        raise UnknownRankingError(SURFACE_DELETED)

    def record(self, name: str) -> SurfaceRecord:
        """Return a surface's record in the store.

        Raises
        ------
        UnknownSurfaceError
            If there is none.
        """
        return self._store.read_surface(name, known=self.other_names(name))

    def other_names(self, name: str) -> list[str]:
        """Return the other names of loaded surfaces, sorted."""
        return sorted(self._by_name.keys() - {name})

    def open(self, record: SurfaceRecord) -> SurfaceRuntime:
        """Return a surface, loaded if need be; may take a minute if formulas are compiled.

        Other threads that open the same surface wait for the first; those that open others do not.
        """
        surface_id = record.surface_id
        with self._lock:
            runtime, loading = self._by_id.get(surface_id), self._loading.get(surface_id)
            if runtime is not None:
                return runtime
            if loading is None:
                future = self._loading[surface_id] = Future()
        if loading is not None:
            return loading.result()
        try:
            runtime = self._load(record)
        except BaseException as error:
            future.set_exception(error)
            raise
        else:
            with self._lock:
                self._by_id[surface_id] = runtime
                self._deleted_ids.discard(surface_id)
                self._index_names()
            future.set_result(runtime)
            return runtime
        finally:
            del self._loading[surface_id]

    def _open_soon(self, record: SurfaceRecord) -> SurfaceRuntime:
        """Return a surface, loaded if need be, or raise if that has to wait for the compiler."""
        if self._load_pool is None:
            return self.open(record)
        surface_id = record.surface_id
        with self._lock:
            loading = self._loading.get(surface_id) or self._submitted.get(surface_id)
            if loading is None:  # one call, however many requests there are for the surface
                loading = self._submitted[surface_id] = self._load_pool.submit(self.open, record)
                loading.add_done_callback(lambda _: self._submitted.pop(surface_id, None))
        while not loading.done():
            wait([loading], _POLL_SECONDS)
            if not loading.done() and self._compilations.surfaces:
                raise CompilingError(record.name)
        return loading.result()

    def update_definition(self, runtime: SurfaceRuntime) -> None:
        """Read a surface's definition from the store again."""
        record = self._store.find_surface(runtime.surface.name)
        if record is not None and record.surface_id == runtime.surface_id:
            runtime.compile(Surface.from_definition(record.definition))
            runtime.redefine(record)

    def remove(self, runtime: SurfaceRuntime) -> None:
        """Unload a surface that was deleted."""
        with self._lock:
            runtime.delete()
            self._by_id.pop(runtime.surface_id, None)
            self._remember_deleted(runtime.surface_id)
            self._index_names()

    def _index_names(self) -> None:
        """Index surfaces by name; of several with one name, the latest: the others were deleted before."""
        self._by_name = {runtime.surface.name: runtime for _, runtime in sorted(self._by_id.items())}

    def _remember_deleted(self, surface_id: int) -> None:
        if len(self._deleted_ids) >= _MAX_DELETED:
            self._deleted_ids.clear()
        self._deleted_ids.add(surface_id)
