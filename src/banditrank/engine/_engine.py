"""All surfaces of a store, loaded and learning in this process."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from banditrank._feedback import Feedback, check_feedback
from banditrank.engine._compilations import Compilations
from banditrank.engine._due_queue import DueQueue
from banditrank.engine._failure_log import log_failure
from banditrank.engine._fork_guard import FORKED, guard_against_forks
from banditrank.engine._group_commit import Deliver, FeedbackResult, GroupCommitter
from banditrank.engine._observers import SurfaceObserver
from banditrank.engine._policy_snapshot import ArmSnapshots
from banditrank.engine._ranking_ids import IssuedRanking, RandomBytes, RankingIdSigner, seeded_bytes
from banditrank.engine._surface import ItemChanges, Surface
from banditrank.engine._surface_registry import SurfaceRegistry
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.engine._sync_loop import SyncLoop
from banditrank.errors import (
    BanditRankError,
    InvalidInputError,
    StoreError,
    StoreUnavailableError,
    UnknownRankingError,
    UnknownSurfaceError,
)
from banditrank.storage._base import Store
from banditrank.storage._records import Change, CommitStatus, SurfaceRecord

_LOAD_THREADS = 4  # so that a surface whose code is compiled does not delay those whose code is cached
_LOAD_POLL_SECONDS = 0.02
_MAX_UPDATE_ATTEMPTS = 20  # of a definition that other processes update as well

logger = logging.getLogger(__name__)


class Engine:
    """Loaded surfaces, the group committer that they share, and the sync loop. Thread-safe.

    Parameters
    ----------
    store
        Where surfaces, impressions and counts are kept. It is not closed with the engine.
    sync_seconds
        Period of the sync with other processes that use the store.
    polls
        Whether to sync all the time, or only while the engine is used; see `SyncLoop`.
    clock
        Returns the time in seconds since 1970.
    deliver
        Runs commit callbacks; see `GroupCommitter`.
    random_bytes
        Source of the randomness of ranking ids and exploring policies; seeded by the system by default.
    observe
        Returns the observer of a surface that was loaded.
    loads_in_background
        Whether surfaces are loaded in threads of their own, also those of the store at the start. Requests
        for a surface that is not loaded because code is being compiled then raise an error instead of
        waiting.

    Attributes
    ----------
    store, sync_seconds
        As given.
    compilations
        Surfaces whose code is being compiled.
    committer
        The group committer of all surfaces.
    """

    def __init__(
        self,
        store: Store,
        *,
        sync_seconds: float = 0.25,
        polls: bool = True,
        clock: Callable[[], float] = time.time,
        deliver: Deliver | None = None,
        random_bytes: RandomBytes | None = None,
        observe: Callable[[SurfaceRuntime], SurfaceObserver] = lambda _: SurfaceObserver(),
        loads_in_background: bool = False,
    ) -> None:
        self.store = store
        self.sync_seconds = sync_seconds
        self._clock = clock
        self._observe = observe
        self._random_bytes = seeded_bytes() if random_bytes is None else random_bytes
        self._signer = RankingIdSigner(store.secret())
        self._is_disabled = False
        self._queue: DueQueue[SurfaceRuntime] = DueQueue(SurfaceRuntime.due_in)
        self.compilations = Compilations()
        self._load_pool = ThreadPoolExecutor(_LOAD_THREADS, thread_name_prefix="banditrank-load")
        self._registry = SurfaceRegistry(
            store, self._load, self.compilations, self._load_pool if loads_in_background else None
        )
        self._sync_loop = SyncLoop(
            store,
            self._registry,
            self._queue,
            self._load_pool,
            sync_seconds=sync_seconds,
            polls=polls,
            clock=clock,
        )
        self.committer = GroupCommitter(store, on_change=self._apply, deliver=deliver, clock=clock)
        try:
            self._sync_loop.start(in_background=loads_in_background)
        except BaseException:
            self.committer.close()
            self._load_pool.shutdown()
            raise
        guard_against_forks(self)

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._clock()

    @property
    def last_sync(self) -> float:
        """Time of the latest sync, by the monotonic clock."""
        return self._sync_loop.last_sync

    @property
    def sync_errors(self) -> dict[str, str]:
        """Errors of surfaces that are out of sync with the store, by name."""
        return self._sync_loop.errors

    @property
    def has_loaded(self) -> bool:
        """Whether the surfaces that the store had at the start are loaded, or could not be."""
        return self._sync_loop.has_loaded

    def wait_until_loaded(self, timeout_seconds: float) -> bool:
        """Wait for `has_loaded` until the timeout, or until code is compiled; return `has_loaded`."""
        end = time.monotonic() + timeout_seconds
        while not self._sync_loop.wait_until_loaded(_LOAD_POLL_SECONDS):
            if self.compilations.surfaces or time.monotonic() >= end:
                break
        return self.has_loaded

    def touch(self) -> None:
        """Register a use; an engine that does not poll syncs only while it is used."""
        self._sync_loop.touch()

    def check_open(self) -> None:
        """Check that the engine is not closed.

        Raises
        ------
        StoreUnavailableError
            If it is closed, and feedback could not be counted.
        """
        self.committer.check_open()

    # Surfaces

    def surfaces(self) -> list[SurfaceRuntime]:
        """Return all loaded surfaces, sorted by name."""
        return self._registry.by_name()

    def loaded(self, name: str) -> SurfaceRuntime | None:
        """Return a surface if it is loaded, without reading the store."""
        return self._registry.loaded(name)

    def surface(self, name: str) -> SurfaceRuntime:
        """Return a surface.

        Raises
        ------
        UnknownSurfaceError
            If the store has no surface of this name.
        CompilingError
            If the engine loads in the background, and the surface is not loaded because code is being
            compiled.
        """
        return self._registry.find(name)

    def create_surface(self, surface: Surface) -> SurfaceRuntime:
        """Create a surface.

        Raises
        ------
        AlreadyExistsError
            If there is a surface of this name.
        """
        with self.compilations.track(surface.name):
            ArmSnapshots.check_rankable(surface)
        return self._registry.open(self.store.create_surface(surface.name, surface.definition))

    def update_surface(self, name: str, update: Callable[[Surface], Surface]) -> SurfaceRuntime:
        """Update a surface's definition, also while other processes update it.

        Parameters
        ----------
        name
            Name of the surface.
        update
            Returns the new definition, given the current one; may be called several times.

        Raises
        ------
        UnknownSurfaceError
            If the store has no surface of this name.
        InvalidInputError
            If the counts do not fit the new definition.
        StoreUnavailableError
            If the store cannot be read or written, or other processes update the surface all the time.
        """
        for _ in range(_MAX_UPDATE_ATTEMPTS):
            record = self._registry.record(name)
            current = Surface.from_definition(record.definition)
            runtime = self._registry.open(record)  # another one if it was deleted and created again
            updated = current.successor(update(current), version=runtime.version)
            new_record = record
            if updated.definition != current.definition:
                runtime.compile(updated)
                stored = self.store.update_surface(record, updated.definition)
                if stored is None:
                    continue
                new_record = stored
            runtime.redefine(new_record)
            runtime.refresh()
            return runtime
        raise StoreUnavailableError(
            f"surface {name!r} was updated by other processes {_MAX_UPDATE_ATTEMPTS} times in a row"
        )

    def update_items(
        self, name: str, update: Callable[[Surface], Surface]
    ) -> tuple[SurfaceRuntime, ItemChanges]:
        """Update a surface's items as `update_surface` does, and also return what changed.

        Raises
        ------
        UnknownSurfaceError, InvalidInputError, StoreUnavailableError
            As for `update_surface`.
        """
        attempts: list[ItemChanges] = []

        def compared(surface: Surface) -> Surface:
            updated = update(surface)
            attempts.append(ItemChanges.between(surface, updated))
            return updated

        return self.update_surface(name, compared), attempts[-1]

    def delete_surface(self, name: str) -> None:
        """Delete a surface and its counts.

        Raises
        ------
        UnknownSurfaceError
            If the store has no surface of this name.
        """
        runtime = self.loaded(name)
        if not self.store.delete_surface(name):
            raise UnknownSurfaceError("surface", name, self._registry.other_names(name))
        if runtime is not None:
            self._registry.remove(runtime)

    # Feedback

    def issued_ranking(self, ranking_id: str) -> tuple[SurfaceRuntime, IssuedRanking]:
        """Return the surface and the content of a ranking id.

        Raises
        ------
        UnknownRankingError
            If the ranking was not issued from this store.
        """
        issued = self._verify(ranking_id)
        runtime = self._registry.find_for_ranking(issued.impression.surface_id)
        if issued.revision > runtime.revision:  # issued by a replica that has a newer definition
            self._registry.update_definition(runtime)
        return runtime, runtime.validator.validate(issued)

    def cached_ranking(self, ranking_id: str) -> tuple[SurfaceRuntime, IssuedRanking] | None:
        """Return what `issued_ranking` does, or None if the store has to be read for it."""
        issued = self._verify(ranking_id)
        runtime = self._registry.loaded_for_ranking(issued.impression.surface_id)
        if runtime is None or not runtime.validator.has_cached(issued.revision):
            return None
        return runtime, runtime.validator.validate(issued)

    def submit_feedback(
        self,
        feedback: Feedback,
        *,
        callback: Callable[[FeedbackResult], None],
        may_read_store: bool = False,
    ) -> bool:
        """Validate feedback and queue it for the next group commit, without waiting for the commit.

        Parameters
        ----------
        feedback
            The feedback.
        callback
            Called exactly once if this returns True, by the engine's `deliver`: with the status as for
            `feedback` once that is durable, or with the error that rejected the feedback.
        may_read_store
            Whether to read the store if the ranking's surface or revision is not loaded, or its attribution
            window has closed. Reading blocks, so an event loop leaves this False and repeats the call in a
            thread if it returned False.

        Returns
        -------
        bool
            False if the store must be read first: nothing was queued, and `callback` is not called.

        Raises
        ------
        BanditRankError
            If the feedback is invalid, or cannot be queued; `callback` is not called.
        """
        found = self.cached_ranking(feedback.ranking_id)
        if found is None:
            if not may_read_store:
                return False
            found = self.issued_ranking(feedback.ranking_id)
        runtime, issued = found
        event = runtime.event(issued, feedback)
        if runtime.has_expired(issued):
            if not may_read_store:
                return False
            runtime.check_repeated(event)
            self.committer.run([(partial(runtime.finish_feedback, event, callback), CommitStatus.REPEATED)])
        else:
            self.committer.submit(event, partial(runtime.finish_feedback, event, callback))
        return True

    def feedback(
        self,
        ranking_id: str,
        *,
        clicked: str | Sequence[str] | None = None,
        reward: float = 1.0,
        final: bool | None = None,
    ) -> str:
        """Count or record feedback, and wait until that is durable.

        Parameters
        ----------
        ranking_id, clicked, reward, final
            As for `Feedback`.

        Returns
        -------
        str
            ``counted``; ``recorded`` if the ranking is counted later; or ``repeated`` if the feedback adds
            nothing.

        Raises
        ------
        FeedbackError
            If the ranking is unknown, its window closed, or other feedback was reported for it.
        InvalidInputError
            If it is not valid: see `SurfaceRuntime.event`.
        StoreUnavailableError
            If the store cannot be written to; the same feedback may be sent again.
        """
        (result,) = self.feedback_batch([Feedback(ranking_id, clicked, reward, final)])
        if isinstance(result, Exception):
            raise result
        return result

    def feedback_batch(self, feedback: Iterable[Feedback]) -> list[FeedbackResult]:
        """Count feedback for several rankings in one group commit, and wait until that is durable.

        Raises
        ------
        InvalidInputError
            If an element is not a `Feedback`; nothing is counted then.
        """
        futures = [self._submit(one) for one in check_feedback(feedback)]
        return [future.result() for future in futures]

    def _submit(self, feedback: Feedback) -> Future[FeedbackResult]:
        future: Future[FeedbackResult] = Future()
        try:
            self.submit_feedback(feedback, callback=future.set_result, may_read_store=True)
        except BanditRankError as error:  # rejects this feedback, not others of a batch
            future.set_result(error)
        return future

    def _verify(self, ranking_id: str) -> IssuedRanking:
        if self._is_disabled:  # it has no thread that commits
            raise InvalidInputError("engine", FORKED, f"process {os.getpid()}")
        try:
            return self._signer.verify(ranking_id)
        except InvalidInputError as error:
            raise UnknownRankingError(str(error)) from None

    def close(self) -> None:
        """Commit what is queued, save snapshots, and stop; does nothing in a forked process."""
        if self._is_disabled:
            return
        self._sync_loop.close()
        self.committer.close()
        for runtime in self.surfaces():
            try:
                runtime.save_snapshot()
            except StoreError as error:
                log_failure(logger, logging.WARNING, "snapshot failed", error, surface=runtime.surface.name)

    def disable(self) -> None:
        """Refuse to work: this is a copy in a forked process."""
        self._is_disabled = True
        for runtime in self._registry.all():
            runtime.refuse(FORKED)

    def _is_idle(self) -> bool:
        return self._sync_loop.is_idle

    def _load(self, record: SurfaceRecord) -> SurfaceRuntime:
        return SurfaceRuntime(
            record,
            self.store,
            self.committer,
            self._signer,
            self._clock,
            self._random_bytes,
            observe=self._observe,
            is_idle=self._is_idle,
            on_due=self._queue.mark,
            compilations=self.compilations,
        )

    def _apply(self, change: Change) -> None:
        runtime = self._registry.loaded_id(change.surface_id)
        if runtime is not None:
            runtime.apply(change)
