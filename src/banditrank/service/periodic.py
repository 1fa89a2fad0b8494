"""Work that is done again and again, and goes on whatever comes of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


async def run_periodically(what: str, work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Do some work every so many seconds; if it fails, say so once, until it succeeds again.

    Parameters
    ----------
    what
        For the log.
    work
        What is done.
    seconds
        Between its end and its next beginning.
    """
    failing = False
    while True:
        try:
            await work()
            failing = False
        except Exception:
            if not failing:
                logger.exception("%s failed, and is tried again", what)
            failing = True
        await asyncio.sleep(seconds)
