"""What becomes of a surface's rankings in time: they are settled without feedback, and forgotten."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from banditrank.engine.group_commit import Answer, GroupCommitter
from banditrank.engine.trusted_clock import TrustedClock
from banditrank.engine.surface import Surface
from banditrank.dashboard.surface_monitor import SurfaceMonitor
from banditrank.errors import StoreUnavailableError
from banditrank.storage.base import Store
from banditrank.storage.records import DISCARDED, NOT_CLICKED, Event, CommitStatus

LOOK_SECONDS = 60.0
"""Maximum time between looks for rankings that another process left, or this one before it was restarted."""

_SETTLE_SECONDS = 1.0
_GRACE_SECONDS = 5.0  # after a window closed: clocks of replicas differ, and commits take time
_LATEST_NOTE_SECONDS = 600.0  # by which a shown ranking may be noted late, after a store was down
_FORGET_SECONDS = 3600.0
_MAX_AT_ONCE = 1000
_GOLDEN_RATIO = 0.618033988749895  # whose multiples are spread evenly

# A clock that is ahead would close the windows of rankings that others just gave out, and have feedback
# refused until they are as late: it is believed after a minute with the one, after an hour with the other.
_SETTLING_TRIAL_SECONDS = 60.0
_FORGETTING_TRIAL_SECONDS = 3600.0


class ImpressionExpirer:
    """Settles rankings whose window closed without feedback, and forgets those that are old.

    Parameters
    ----------
    number
        The surface's.
    store, journal
        Where rankings are found, and settled.
    clock
        Gives the time in seconds since 1970.
    known
        A time that has surely come: that of the latest change in the store, before this process made any.
    watch
        Where it is noted how many windows closed.
    changed
        Called when `due_in` is less than it was, for another reason than time.
    """

    def __init__(
        self,
        number: int,
        store: Store,
        committer: GroupCommitter,
        clock: Callable[[], float],
        known: float,
        monitor: SurfaceMonitor,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._number = number
        self._store = store
        self._committer = committer
        self._clock = clock
        self._monitor = monitor
        self._settling_time = TrustedClock(clock, known, _SETTLING_TRIAL_SECONDS)
        self._forgetting_time = TrustedClock(clock, known, _FORGETTING_TRIAL_SECONDS)
        self._changed = changed
        self._steady = time.monotonic if clock is time.time else clock
        self._settled_until = 0.0
        self._next_look = self._next_forgetting = 0.0
        self._being_settled: set[bytes] = set()  # keys, which the store has as open still
        self._failed = False  # whether one of them could not be settled

    def is_due(self) -> bool:
        """Return whether it is time to look for rankings."""
        return self.due_in() <= 0.0

    def due_in(self) -> float:
        """Return the number of seconds until it is time; infinity while rankings are being settled."""
        if self._being_settled:
            return inf
        if self._failed:
            self._failed = False
            self._next_look = min(self._next_look, self._steady() + _SETTLE_SECONDS)
        return min(
            self._left(self._next_look, LOOK_SECONDS),
            self._left(self._next_forgetting, _FORGET_SECONDS),
            self._monitor.feedback_tracker.closes_in(now=self._clock()),
        )

    def tend(self, surface: Surface) -> None:
        """Settle what lapsed, and forget what is old, by the settings of the surface.

        The store is asked only if rankings of this process closed without feedback, or if it is time to look
        for rankings of others, or of this process before it was restarted.
        """
        forgets = self._left(self._next_forgetting, _FORGET_SECONDS) <= 0.0
        missed = self._monitor.feedback_tracker.close(now=self._clock())
        if not (missed or forgets or self._left(self._next_look, LOOK_SECONDS) <= 0.0):
            return
        until = self._settling_time.now() - _GRACE_SECONDS
        old = _milliseconds(self._forgetting_time.now() - surface.keep_seconds)
        if forgets:
            self._settled_until = 0.0  # a store that was down for long may have noted rankings very late
        self._next_look = self._steady() + _SETTLE_SECONDS
        self._failed = False
        if self._settle(surface, until) >= old and forgets:  # all that is old was settled before
            self._next_forgetting = self._steady() + _FORGET_SECONDS
            self._store.prune(self._number, before=old)

    def _left(self, moment: float, period: float) -> float:
        """Return the number of seconds until a moment; 0 if it came, or the clock was set back."""
        left = moment - self._steady()
        return left if 0.0 < left <= period else 0.0

    def _seconds_to_next_look(self, coming: Sequence[Event]) -> float:
        """Return the seconds until the next scan for rankings that lapsed.

        That is when the next ranking in the store lapses, when the clock is believed if it is on trial, or
        else after a while that differs between surfaces, so that not all look at once.
        """
        seconds = LOOK_SECONDS * (0.75 + 0.25 * (self._number * _GOLDEN_RATIO % 1.0))
        if self._settling_time.trial_seconds_left > 0.0:
            seconds = min(seconds, self._settling_time.trial_seconds_left)
        for shown, _ in coming:
            expires_at_ms = self._settling_time.seconds_until(shown.expires_at_ms / 1000 + _GRACE_SECONDS)
            seconds = min(seconds, max(expires_at_ms, _SETTLE_SECONDS))
        return seconds

    def _first_open(self, since: float, until: float) -> list[Event]:
        """Return the first open ranking that lapses from one time to `LOOK_SECONDS` after another, if any."""
        latest = max(until, self._clock()) + LOOK_SECONDS
        return self._store.pending_impressions(
            self._number, since=_milliseconds(since), until=_milliseconds(latest), limit=1
        )

    def _settle(self, surface: Surface, until: float) -> int:
        """Settle rankings whose window closed without feedback; return when the first of them lapsed.

        In milliseconds since 1970; if there is none, until when it was looked for them.
        """
        since = min(self._settled_until, until) - _LATEST_NOTE_SECONDS
        outcome = NOT_CLICKED if surface.unreported == "not-clicked" else DISCARDED
        coming, lapsed = self._first_open(since, until), []  # one query, if the surface has no traffic
        if coming and coming[0].shown.expires_at_ms < _milliseconds(until):
            lapsed = self._store.pending_impressions(
                self._number, since=_milliseconds(since), until=_milliseconds(until), limit=_MAX_AT_ONCE
            )
            coming = self._first_open(until, until)
        for shown, _ in lapsed:
            self._being_settled.add(shown.key)
            try:
                self._committer.settle(Event(shown, outcome), partial(self._settled, shown.key))
            except StoreUnavailableError:
                self._being_settled.discard(shown.key)
                raise
        if len(lapsed) < _MAX_AT_ONCE:
            self._settled_until = until
            self._next_look = self._steady() + self._seconds_to_next_look(coming)
        else:
            self._next_look = 0.0  # as soon as these are settled
        return lapsed[0].shown.expires_at_ms if lapsed else _milliseconds(until)

    def _settled(self, key: bytes, answer: Answer) -> None:
        """Record that a ranking was settled, or that it must be looked for again."""
        self._being_settled.discard(key)
        if not isinstance(answer, CommitStatus):
            self._failed = True  # not `_next_look`, which the thread that settles may be about to assign
        if not self._being_settled:
            self._changed()


def _milliseconds(seconds: float) -> int:
    return int(max(0.0, seconds) * 1000)
