"""Ctrl-C during calls of compiled functions."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType


class DeferredInterrupts:
    """Ctrl-C that was received in a block of `deferred_interrupts`.

    Parameters
    ----------
    handler
        The signal handler of the program.
    """

    def __init__(self, handler: Callable[[int, "FrameType | None"], Any]) -> None:
        self._handler = handler
        self._received: tuple[int, FrameType | None] | None = None

    def receive(self, number: int, frame: "FrameType | None") -> None:
        """Keep the first signal for later; a second one is handled at once."""
        if self._received is not None:
            self.handle()
        self._received = (number, frame)

    def handle(self) -> None:
        """Call the handler if a signal was received; Python's own raises KeyboardInterrupt."""
        received, self._received = self._received, None
        if received is not None:
            self._handler(*received)


@contextmanager
def deferred_interrupts() -> Iterator[DeferredInterrupts]:
    """Handle Ctrl-C after the block, or where the block calls `handle`, but not elsewhere within it.

    For calls from Python of compiled functions that take a generator. To unpack it, Numba calls `ctypes.cast`
    without a check of the result: an exception of the signal handler there ends the process with a
    segmentation fault. Only the main thread handles signals. Takes about 10 µs.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield DeferredInterrupts(signal.default_int_handler)
        return
    interrupts = DeferredInterrupts(handler)
    signal.signal(signal.SIGINT, interrupts.receive)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)
        interrupts.handle()
