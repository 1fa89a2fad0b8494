"""Rank and learn in process, in an event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from banditrank._feedback import Feedback, check_feedback
from banditrank._ranker import Ranker
from banditrank._shown_ranking import ShownRanking
from banditrank.counts._counts import Counts
from banditrank.dashboard._estimates_report import EstimatesReport
from banditrank.dashboard._explain import Explanation
from banditrank.dashboard._treatment_report import TreatmentReport
from banditrank.engine._async_feedback import AsyncFeedback
from banditrank.engine._experiment import SurfaceExperiment
from banditrank.engine._experiment_results import ExperimentResults
from banditrank.engine._fork_guard import guard_against_forks
from banditrank.engine._ranking_ids import RandomBytes
from banditrank.engine._redeployment import SurfaceUpdate
from banditrank.engine._surface import ItemChanges, Surface
from banditrank.errors import StoreUnavailableError
from banditrank.storage._base import Store

R = TypeVar("R")

# For slow rankings, and feedback that needs a read of the store.
_N_THREADS = 4
# Of rankings that are made in the event loop; rankings of candidates are not prepared.
_MAX_BATCH_SIZE = 64
_MAX_RESTRICTED_BATCH_SIZE = 8


class AsyncRanker:
    """A `Ranker` for applications that run in an event loop, which no method blocks.

    Rankings take microseconds and are made in the loop; those that may take longer are made in a thread.
    Feedback is committed in groups: thousands of tasks may await theirs, without a thread for each. All
    methods may be called by many tasks of one event loop at a time.

    A cancelled task does not withdraw feedback that it submitted: the feedback is counted, and a retry
    returns ``repeated``. A ranking whose task is cancelled while a thread makes it counts as not clicked
    when its window closes, as does each ranking that is never shown.

    Parameters
    ----------
    surface, store, update, sync_seconds, clock, random_bytes
        As for `Ranker`, which `open` creates.

    Raises
    ------
    StoreUnavailableError
        Raised by all methods until the ranker is open.

    Examples
    --------
    >>> surface = Surface("ads", items=["ad-1", "ad-2", "ad-3"], n_positions=2, user_types=["new", "old"])
    >>> async def visit() -> str:
    ...     async with AsyncRanker(surface) as ranker:
    ...         shown = await ranker.rank("new")
    ...         return await ranker.feedback(shown.id, clicked=shown.items[0])
    >>> asyncio.run(visit())
    'counted'
    """

    def __init__(
        self,
        surface: Surface,
        store: Store | None = None,
        *,
        update: SurfaceUpdate = "items",
        sync_seconds: float = 0.25,
        clock: Callable[[], float] = time.time,
        random_bytes: RandomBytes | None = None,
    ) -> None:
        self._create = partial(
            Ranker,
            surface,
            store,
            update=update,
            sync_seconds=sync_seconds,
            clock=clock,
            random_bytes=random_bytes,
        )
        self._opened: _OpenRanker | None = None
        self._opening = threading.Lock()

    async def open(self) -> Self:
        """Load or create the surface in the store, as the constructor of `Ranker`; `async with` does it, too.

        A ranker that was closed may be opened again.

        Raises
        ------
        InvalidInputError, StoreError
            As for `Ranker`.
        """
        opened: _OpenRanker | None = None

        def open_unless_open() -> None:
            nonlocal opened
            with self._opening:
                if self._opened is None or self._opened.is_closed:
                    self._opened = opened = _OpenRanker(self._create())

        try:
            await _run_to_end(open_unless_open)
        except asyncio.CancelledError:
            # Not if another task has opened it.
            if opened is not None:
                await self.close()
            raise
        return self

    async def close(self) -> None:
        """Commit what is queued, and stop, as `Ranker.close`."""
        if self._opened is not None:
            self._opened.is_closed = True
            await _run_to_end(self._opened.close)

    @property
    def surface(self) -> Surface:
        """Current definition of the surface."""
        return self._ranker.surface

    async def rank(
        self,
        user_type: str,
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        visitor: str | None = None,
    ) -> ShownRanking:
        """Return a ranking to show to a user, as `Ranker.rank`."""
        opened = self._check_open()
        rank = partial(
            opened.ranker.rank,
            user_type,
            candidates=candidates,
            exclude=exclude,
            pinned=pinned,
            visitor=visitor,
        )
        if opened.ranker.ranks_fast(is_restricted=bool(candidates or exclude or pinned)):
            return rank()
        return await opened.run(rank)

    async def rank_batch(
        self,
        user_types: Sequence[str],
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        visitors: Sequence[str | None] | None = None,
    ) -> list[ShownRanking]:
        """Return a ranking for a user of each type, all of them or none, as `Ranker.rank_batch`."""
        opened = self._check_open()
        rank = partial(
            opened.ranker.rank_batch,
            user_types,
            candidates=candidates,
            exclude=exclude,
            pinned=pinned,
            visitors=visitors,
        )
        is_restricted = bool(candidates or exclude or pinned)
        max_size = _MAX_RESTRICTED_BATCH_SIZE if is_restricted else _MAX_BATCH_SIZE
        if len(user_types) <= max_size and opened.ranker.ranks_fast(is_restricted=is_restricted):
            return rank()
        return await opened.run(rank)

    async def feedback(
        self,
        ranking_id: str,
        *,
        clicked: str | Sequence[str] | None = None,
        reward: float = 1.0,
        final: bool | None = None,
    ) -> str:
        """Count or record the feedback for a ranking, until that is durable, as `Ranker.feedback`."""
        (result,) = await self.feedback_batch([Feedback(ranking_id, clicked, reward, final)])
        if isinstance(result, Exception):
            raise result
        return result

    async def feedback_batch(self, feedback: Iterable[Feedback]) -> list[str | Exception]:
        """Count the feedback for several rankings, as `Ranker.feedback_batch`."""
        futures = self._check_open().feedback.submit(check_feedback(feedback))
        return [await future for future in futures]

    async def add_items(self, items: Iterable[str]) -> ItemChanges:
        """Add items, or bring retired ones back, as `Ranker.add_items`."""
        return await asyncio.to_thread(self._ranker.add_items, items)

    async def retire_items(self, items: Iterable[str]) -> ItemChanges:
        """Stop showing items, as `Ranker.retire_items`."""
        return await asyncio.to_thread(self._ranker.retire_items, items)

    async def sync_items(self, items: Iterable[str]) -> ItemChanges:
        """Make these items, and no others, the active ones, as `Ranker.sync_items`."""
        return await asyncio.to_thread(self._ranker.sync_items, items)

    async def counts(self) -> Counts:
        """Return the counts that rankings are computed from, as `Ranker.counts`."""
        return await asyncio.to_thread(self._ranker.counts)

    async def estimates(self, *, level: float = 0.95) -> EstimatesReport:
        """Return estimates of positions and items, as `Ranker.estimates`."""
        return await asyncio.to_thread(self._ranker.estimates, level=level)

    async def equality(self) -> TreatmentReport:
        """Return the value of personalized and equal treatment, as `Ranker.equality`."""
        return await asyncio.to_thread(self._ranker.equality)

    async def set_experiment(self, experiment: SurfaceExperiment | None) -> None:
        """Start an experiment, change the present one, or stop it, as `Ranker.set_experiment`."""
        await asyncio.to_thread(self._ranker.set_experiment, experiment)

    async def experiment(self) -> ExperimentResults:
        """Return the results of the surface's experiment, as `Ranker.experiment`."""
        return await asyncio.to_thread(self._ranker.experiment)

    async def explain(self, ranking_id: str) -> Explanation:
        """Return the counts and beliefs behind a ranking, and its outcome, as `Ranker.explain`."""
        return await asyncio.to_thread(self._ranker.explain, ranking_id)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def _ranker(self) -> Ranker:
        """The ranker, also after it was closed: reports are still available."""
        if self._opened is None:
            raise StoreUnavailableError("the ranker is not open: use it in 'async with'")
        return self._opened.ranker

    def _check_open(self) -> "_OpenRanker":
        if self._opened is None or self._opened.is_closed:
            raise StoreUnavailableError("the ranker is not open: use it in 'async with'")
        return self._opened


class _OpenRanker:
    """A ranker with the threads for its slow calls."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.is_closed = False
        self.feedback = AsyncFeedback(ranker.submit_feedback, lambda: self._threads)
        self._threads = _new_threads()
        self._closing = threading.Lock()
        guard_against_forks(self)

    async def run(self, call: Callable[[], R]) -> R:
        """Run a call in a thread; if it is cancelled before a thread is free, it does not run."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def close(self) -> None:
        """Submit the feedback that waits for a thread, commit what is queued, and stop."""
        # Closing again waits for the first, and does nothing.
        with self._closing:
            self._threads.shutdown()
            self.ranker.close()

    def disable(self) -> None:
        """Replace the threads, which a forked process does not have: the ranker refuses to work there."""
        self._threads = _new_threads()


def _new_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_N_THREADS, thread_name_prefix="banditrank-ranker")


async def _run_to_end(call: Callable[[], object]) -> None:
    """Run a call in a thread to its end; raise a cancellation afterwards, as a thread has none."""
    running = asyncio.get_running_loop().run_in_executor(None, call)
    cancellation: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        # Read, so that it is not logged as never retrieved.
        running.exception()
        raise cancellation
    running.result()
