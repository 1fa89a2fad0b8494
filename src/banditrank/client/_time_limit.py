"""Time limit of a synchronous call."""

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def call_within(seconds: float, function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function that runs in another thread.

    Timeouts of sockets are not enough: they apply to each packet, and not to the resolution of names.

    Raises
    ------
    TimeoutError
        If there is no result in time. The function continues, and its result is dropped.

    Examples
    --------
    >>> call_within(60.0, max, 1, 2)
    2
    """
    result: Future[T] = Future()
    context = copy_context()  # traces and log fields of the caller

    def run() -> None:
        try:
            result.set_result(context.run(function, *arguments))
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
            result.set_exception(error)

    Thread(target=run, name="banditrank-rank", daemon=True).start()
    return result.result(seconds)
