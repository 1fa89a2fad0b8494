"""Counts of impressions of this process that wait for feedback."""

from collections import defaultdict, deque
from typing import NamedTuple

_MAX_SLOTS = 1024  # in an attribution window
_MIN_SHIFT = 10  # a slot of 1024 milliseconds
_MAX_DELAYS = 1000
_GRACE_MS = 5000  # after a window closed, for feedback that is being committed


class Pending(NamedTuple):
    """Impressions that wait for feedback."""

    n_impressions: int
    oldest_seconds: float  # age of the oldest


class FeedbackTracker:
    """Counts impressions and feedback by the time at which the attribution window closes.

    Times are rounded to slots, which bounds memory. Impressions of other processes are not counted.

    Parameters
    ----------
    window_seconds
        Length of the attribution window.

    Attributes
    ----------
    shift
        Number of bits by which a time in milliseconds is shifted to get its slot.
    issued
        Number of impressions by slot; incremented by the caller, since a call would take longer.
    closed, unreported
        Numbers of windows that closed, and that closed without feedback.

    Examples
    --------
    >>> tracker = FeedbackTracker(60.0)
    >>> for expires_at_ms in (60_000, 60_000, 99_000):
    ...     tracker.issued[expires_at_ms >> tracker.shift] += 1
    >>> tracker.add_feedback(60_000, now=2.0)
    >>> tracker.pending(now=10.0).n_impressions, tracker.delay_quantiles(0.5)
    (2, [2.0])
    >>> tracker.closes_in(now=10.0)
    55.417
    >>> tracker.close(now=70.0)
    1
    >>> tracker.closed, tracker.unreported
    (2, 1)
    """

    def __init__(self, window_seconds: float) -> None:
        self.window_seconds = window_seconds
        self.shift = max(_MIN_SHIFT, int(window_seconds * 1000 / _MAX_SLOTS).bit_length())
        self.issued: defaultdict[int, int] = defaultdict(int)
        self.closed = self.unreported = 0
        self._reported: defaultdict[int, int] = defaultdict(int)
        self._delays: deque[float] = deque(maxlen=_MAX_DELAYS)

    def with_window(self, window_seconds: float) -> "FeedbackTracker":
        """Return a tracker for another window length; open windows are dropped, totals are kept."""
        other = FeedbackTracker(window_seconds)
        other.closed, other.unreported = self.closed, self.unreported
        return other

    def add_feedback(self, expires_at_ms: int, *, now: float) -> None:
        """Count feedback for an impression."""
        slot = expires_at_ms >> self.shift
        if slot in self.issued:
            self._reported[slot] += 1
            self._delays.append(max(0.0, now + self.window_seconds - expires_at_ms / 1000))

    def close(self, *, now: float) -> int:
        """Close the windows that ended; return the number of those without feedback."""
        until = (int(now * 1000) - _GRACE_MS) >> self.shift
        closed = unreported = 0
        for slot in [slot for slot in list(self.issued) if slot < until]:
            issued = self.issued.pop(slot)
            closed += issued
            unreported += max(0, issued - self._reported.pop(slot, 0))
        self.closed += closed
        self.unreported += unreported
        return unreported

    def closes_in(self, *, now: float) -> float:
        """Return the number of seconds until a window without feedback closes; infinity if there is none."""
        waiting = self._waiting()
        if not waiting:
            return float("inf")
        next_slot = min(waiting) + 1
        return ((next_slot << self.shift) + _GRACE_MS + 1) / 1000 - now  # plus one: `close` rounds down

    def pending(self, *, now: float) -> Pending:
        """Return the impressions that wait for feedback."""
        waiting = self._waiting()
        if not waiting:
            return Pending(0, 0.0)
        oldest = now + self.window_seconds - (min(waiting) << self.shift) / 1000
        return Pending(sum(waiting.values()), max(0.0, min(oldest, self.window_seconds)))

    def _waiting(self) -> dict[int, int]:
        """Return the number of impressions without feedback, by slot."""
        issued = list(self.issued.items())  # a copy: another thread may close windows meanwhile
        left = {slot: number - self._reported.get(slot, 0) for slot, number in issued}
        return {slot: number for slot, number in left.items() if number > 0}

    def delay_quantiles(self, *shares: float) -> list[float]:
        """Return quantiles of the latest feedback's delays in seconds; empty if there was no feedback."""
        delays = sorted(self._delays)
        return [delays[min(int(share * len(delays)), len(delays) - 1)] for share in shares] if delays else []
