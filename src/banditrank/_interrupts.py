"""Ctrl-C during compilation, and during calls of compiled functions."""

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
        The signal handler of the program, or of the block around this one.
    defer_all
        Whether to defer a second signal, too.
    """

    def __init__(self, handler: Callable[[int, "FrameType | None"], Any], *, defer_all: bool) -> None:
        self._handler = handler
        self._defer_all = defer_all
        self._received: tuple[int, FrameType | None] | None = None

    def receive(self, number: int, frame: "FrameType | None") -> None:
        """Keep the first signal for later; a second one is handled at once, unless all are deferred."""
        if self._received is not None and not self._defer_all:
            self.handle()
        self._received = (number, frame)

    def handle(self) -> None:
        """Call the handler if a signal was received; Python's own raises KeyboardInterrupt."""
        received, self._received = self._received, None
        if received is not None:
            self._handler(*received)


@contextmanager
def deferred_interrupts(*, defer_all: bool = False) -> Iterator[DeferredInterrupts]:
    """Handle Ctrl-C after the block, or where the block calls `handle`, but not elsewhere within it.

    For calls from Python of compiled functions that take a generator. To unpack it, Numba calls `ctypes.cast`
    without a check of the result: an exception of the signal handler there ends the process with a
    segmentation fault. A second Ctrl-C is handled at once, so that it stops a policy that hangs; but not if
    ``defer_all`` is true, for the compiler, which must not be interrupted. Blocks can be nested. Only the
    main thread handles signals. Takes about 10 µs.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield DeferredInterrupts(signal.default_int_handler, defer_all=defer_all)
        return
    interrupts = DeferredInterrupts(handler, defer_all=defer_all)
    signal.signal(signal.SIGINT, interrupts.receive)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, handler)
        interrupts.handle()
