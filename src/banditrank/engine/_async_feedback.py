"""Feedback from an event loop, without a thread for each."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol, TypeAlias

from banditrank._feedback import Feedback
from banditrank.engine._group_commit import FeedbackResult

FeedbackFuture: TypeAlias = "asyncio.Future[FeedbackResult]"


class SubmitFeedback(Protocol):
    """`Engine.submit_feedback`, or what calls it."""

    def __call__(
        self, feedback: Feedback, *, callback: Callable[[FeedbackResult], None], may_read_store: bool
    ) -> bool:
        """Queue feedback for the next group commit, or return False if the store must be read first."""


class AsyncFeedback:
    """Submits feedback from an event loop; a group commit resolves all its futures with one wake-up.

    Parameters
    ----------
    submit
        Queues feedback for the next group commit, as `Engine.submit_feedback` does.
    threads
        Returns the threads that read the store, for feedback that needs it.
    """

    def __init__(self, submit: SubmitFeedback, threads: Callable[[], Executor]) -> None:
        self._submit = submit
        self._threads = threads
        self._results: _LoopResults | None = None

    def submit(self, feedback: Sequence[Feedback]) -> list[FeedbackFuture]:
        """Submit feedback, and return a future for the status of each, or the error that rejected it.

        The status is that of a durable commit. A cancelled future does not withdraw its feedback.
        """
        loop = asyncio.get_running_loop()
        if self._results is None or self._results.loop is not loop:
            self._results = _LoopResults(loop)
        futures: list[FeedbackFuture] = [loop.create_future() for _ in feedback]
        submissions = [
            partial(self._submit_one, each, partial(self._results.set, future))
            for each, future in zip(feedback, futures, strict=True)
        ]
        if unloaded := [each for each in submissions if not each(may_read_store=False)]:
            # Not awaited: cancellation does not reach it.
            self._threads().submit(lambda: [each(may_read_store=True) for each in unloaded])
        return futures

    def _submit_one(
        self, feedback: Feedback, callback: Callable[[FeedbackResult], None], *, may_read_store: bool
    ) -> bool:
        try:
            return self._submit(feedback, callback=callback, may_read_store=may_read_store)
        except Exception as error:  # noqa: BLE001 - rejects this feedback, not others of a batch
            callback(error)
            return True


class _LoopResults:
    """Sets the results of futures from other threads, all that are known by then in one call of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._results: deque[tuple[FeedbackFuture, FeedbackResult]] = deque()
        self._is_scheduled = False

    def set(self, future: FeedbackFuture, result: FeedbackResult) -> None:
        """Set the result of a future soon; thread-safe."""
        self._results.append((future, result))
        if not self._is_scheduled:
            self._is_scheduled = True
            # Raised if the loop is closed: no task is waiting.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._set_all)

    def _set_all(self) -> None:
        # Before the queue is read: a result that is added later schedules the next call.
        self._is_scheduled = False
        while self._results:
            future, result = self._results.popleft()
            # It may have been cancelled.
            if not future.done():
                future.set_result(result)
