"""Rankings that were given out by this process: how many wait for feedback, and how many never had any."""

from collections import defaultdict, deque
from typing import NamedTuple

_MOST_SLOTS = 1024  # of a window
_FINEST_SHIFT = 10  # a slot of 1024 milliseconds
_MOST_DELAYS = 1000
_GRACE = 5000  # milliseconds after a window closed: feedback that came in time may be being written


class Pending(NamedTuple):
    """How many rankings wait for feedback, and for how many seconds the oldest of them does."""

    number: int
    oldest: float


class FeedbackTracker:
    """Counts rankings and feedback by when the attribution window closes, in slots of some seconds.

    So what is told of windows that closed is of the same rankings, however traffic changes meanwhile. What
    was given out by other processes is not known here, and left out.

    Parameters
    ----------
    seconds
        How long a window is.

    Attributes
    ----------
    shift
        By how many bits a time in milliseconds is shifted to get the number of its slot.
    given
        How many rankings were given out, by slot. Whoever gives one out counts it: a call would take longer.
    closed, missed
        How many windows closed so far, and how many of them without feedback.

    Examples
    --------
    >>> feedback_tracker = FeedbackTracker(60.0)
    >>> for expires_at_ms in (60_000, 60_000, 99_000):
    ...     feedback_tracker.given[expires_at_ms >> feedback_tracker.shift] += 1
    >>> feedback_tracker.report(60_000, now=2.0)
    >>> feedback_tracker.pending(now=10.0).number, feedback_tracker.delays(0.5)
    (2, [2.0])
    >>> feedback_tracker.closes_in(now=10.0)
    55.417
    >>> feedback_tracker.close(now=70.0)
    1
    >>> feedback_tracker.closed, feedback_tracker.missed
    (2, 1)
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.shift = max(_FINEST_SHIFT, int(seconds * 1000 / _MOST_SLOTS).bit_length())
        self.given: defaultdict[int, int] = defaultdict(int)
        self.closed = self.missed = 0
        self._reported: defaultdict[int, int] = defaultdict(int)
        self._delays: deque[float] = deque(maxlen=_MOST_DELAYS)

    def with_window(self, seconds: float) -> "FeedbackTracker":
        """Return the same for another length of windows; those that are open are not awaited any longer."""
        other = FeedbackTracker(seconds)
        other.closed, other.missed = self.closed, self.missed
        return other

    def report(self, expires_at_ms: int, *, now: float) -> None:
        """Take note that feedback was counted for a ranking that lapses at a time in milliseconds."""
        slot = expires_at_ms >> self.shift
        if slot in self.given:
            self._reported[slot] += 1
            self._delays.append(max(0.0, now + self.seconds - expires_at_ms / 1000))

    def close(self, *, now: float) -> int:
        """Add up the windows that closed; return how many of them closed without feedback."""
        until = (int(now * 1000) - _GRACE) >> self.shift
        closed = missed = 0
        for slot in [slot for slot in list(self.given) if slot < until]:
            given = self.given.pop(slot)
            closed += given
            missed += max(0, given - self._reported.pop(slot, 0))
        self.closed += closed
        self.missed += missed
        return missed

    def closes_in(self, *, now: float) -> float:
        """Return the number of seconds until `close` adds up the first window that is open.

        If none is, it is at least the length of a window.
        """
        slots = list(self.given)  # a copy: another thread may close windows meanwhile
        if not slots:
            return self.seconds
        first = min(slots) + 1
        return ((first << self.shift) + _GRACE + 1) / 1000 - now  # one more: `close` rounds down

    def pending(self, *, now: float) -> Pending:
        """Return how many rankings wait."""
        left = {slot: given - self._reported.get(slot, 0) for slot, given in list(self.given.items())}
        waiting = [slot for slot, number in left.items() if number > 0]
        if not waiting:
            return Pending(0, 0.0)
        oldest = now + self.seconds - (min(waiting) << self.shift) / 1000
        return Pending(sum(left[slot] for slot in waiting), max(0.0, min(oldest, self.seconds)))

    def delays(self, *shares: float) -> list[float]:
        """Return within how many seconds shares of the latest feedback came; nothing if there was none."""
        known = sorted(self._delays)
        return [known[min(int(share * len(known)), len(known) - 1)] for share in shares] if known else []
