"""Periodic background tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


async def run_periodically(name: str, task: Callable[[], Awaitable[None]], interval_seconds: float) -> None:
    """Run a task forever; log the first of consecutive failures and retry at the next interval.

    Parameters
    ----------
    name
        Name of the task, for the log.
    task
        Coroutine function to run.
    interval_seconds
        Seconds between the end of a run and the start of the next.
    """
    is_failing = False
    while True:
        try:
            await task()
            is_failing = False
        except Exception:
            if not is_failing:
                logger.exception("periodic task failed", extra={"task": name})
            is_failing = True
        await asyncio.sleep(interval_seconds)
