"""Bounded thread pools, one for each kind of blocking work.

A report may take seconds, and a client may request many; API keys and health checks must not wait behind
them. Each kind of work therefore has its own threads and queue, and a full queue is an error that the client
can retry.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from banditrank.service._http_errors import OVERLOADED, HttpError

P = ParamSpec("P")
R = TypeVar("R")

REFUSAL_SECONDS = 1.0
"""Seconds by which a refusal is delayed, since a client that retries at once would cost time as well."""

MAX_PAUSE_SECONDS = 5.0
"""Maximum pause after a call of a pool with a duty cycle."""


class ThreadPool:
    """Threads for one kind of blocking work, with a bounded queue.

    Parameters
    ----------
    name
        Name of the threads, also in error messages.
    threads
        Maximum number of calls that run at once.
    max_queued
        Maximum number of calls that wait for a thread; None for no limit, where something else limits the
        number of callers.
    duty_cycle
        Share of a thread's time that calls may take in the long run. Below 1 a thread pauses after a call,
        which leaves the processor and the interpreter lock to others however many calls are queued.
    burst_seconds
        Time that calls may take after a quiet period before the duty cycle applies.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        *,
        max_queued: int | None = None,
        duty_cycle: float = 1.0,
        burst_seconds: float = 0.0,
    ) -> None:
        self._name = name
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"banditrank-{name}")
        self._max_calls = None if max_queued is None else threads + max_queued
        self._duty_cycle = duty_cycle
        self._burst_seconds = burst_seconds
        self._overuse = 0.0  # seconds of work beyond the duty cycle
        self._overuse_at = time.perf_counter()
        self._closing = threading.Event()
        self.calls = 0  # queued or running; changed by the event loop's thread only

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function in a thread and return its result.

        A call that is cancelled before a thread runs it does not run.

        Raises
        ------
        HttpError
            A 503 with Retry-After if the queue is full, after `REFUSAL_SECONDS`.
        """
        if self._max_calls is not None and self.calls >= self._max_calls:
            await asyncio.sleep(REFUSAL_SECONDS)
            raise HttpError(OVERLOADED, f"the queue of {self._name} is full")
        self.calls += 1
        result: Future[R] = Future()
        released = self._executor.submit(self._run, result, partial(function, *args, **kwargs))
        loop = asyncio.get_running_loop()
        released.add_done_callback(lambda _: _call_in(loop, self._release))
        try:
            return await asyncio.wrap_future(result)
        except asyncio.CancelledError:
            released.cancel()
            raise

    def close(self) -> None:
        """Cancel queued calls and wait for running ones."""
        self._closing.set()
        self._executor.shutdown(cancel_futures=True)

    def _run(self, result: "Future[R]", call: Callable[[], R]) -> None:
        if not result.set_running_or_notify_cancel():
            return
        start = time.perf_counter()
        try:
            value = call()
        except BaseException as error:  # noqa: BLE001 - raised where the call is awaited
            result.set_exception(error)
        else:
            result.set_result(value)
        if self._duty_cycle < 1.0:
            self._pause(time.perf_counter() - start)

    def _pause(self, worked_seconds: float) -> None:
        now = time.perf_counter()
        overuse = self._overuse + worked_seconds - (now - self._overuse_at) * self._duty_cycle
        self._overuse = min(max(0.0, overuse), self._burst_seconds + MAX_PAUSE_SECONDS * self._duty_cycle)
        self._overuse_at = now
        self._closing.wait(max(0.0, self._overuse - self._burst_seconds) / self._duty_cycle)

    def _release(self) -> None:
        self.calls -= 1


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)


class ThreadPools:
    """The thread pools of a service.

    Attributes
    ----------
    control
        API keys, readiness and sharing of metrics: at most one call of each at a time.
    store
        Rankings, feedback and surfaces that need a read of the store.
    definitions
        Creation of surfaces and changes of their settings, which may compile code.
    administration
        Changes of items, and deletion of surfaces.
    reports
        Estimates, the equality report and explanations.
    dashboards
        What dashboards show at once: at most one call for each surface.
    assessments
        Estimates of dashboards, which may compile code: at most one call for each surface.
    metrics
        Exposition of metrics.
    """

    def __init__(self) -> None:
        self.control = ThreadPool("control", 3)
        self.store = ThreadPool("store", 4, max_queued=256)
        self.definitions = ThreadPool("definitions", 2, max_queued=16)
        self.administration = ThreadPool("administration", 2, max_queued=16)
        self.reports = ThreadPool("reports", 1, max_queued=8, duty_cycle=0.01, burst_seconds=0.1)
        self.dashboards = ThreadPool("dashboards", 2)
        self.assessments = ThreadPool("assessments", 2)
        self.metrics = ThreadPool("metrics", 1, max_queued=4, duty_cycle=0.1)

    def close(self) -> None:
        """Close all pools."""
        pools: list[ThreadPool] = list(vars(self).values())
        for pool in pools:
            pool.close()
