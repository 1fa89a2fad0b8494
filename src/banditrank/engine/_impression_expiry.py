"""Expiry of impressions without feedback, and pruning of old ones."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from math import inf

from banditrank.engine._feedback_tracker import FeedbackTracker
from banditrank.engine._group_commit import CommitOutcome, GroupCommitter
from banditrank.engine._surface import Surface
from banditrank.engine._trusted_clock import TrustedClock
from banditrank.errors import StoreUnavailableError
from banditrank.storage._base import Store
from banditrank.storage._records import DISCARDED, NOT_CLICKED, CommitStatus, Event, Impression

SCAN_SECONDS = 60.0
"""Maximum time between scans for impressions of other processes, or of this one before a restart."""

_MIN_SCAN_SECONDS = 1.0
_GRACE_SECONDS = 5.0  # after a window closed: clocks of replicas differ, and commits take time
_MAX_LATE_SECONDS = 600.0  # by which an impression may be committed late, after a store was down
_PRUNE_SECONDS = 3600.0
_MAX_EXPIRED_AT_ONCE = 1000
_MAX_EXPIRES_AT_MS = (1 << 48) - 1  # that an impression's key can hold
_GOLDEN_RATIO = 0.618033988749895  # its multiples spread evenly

# A clock that is ahead would expire impressions that were just issued, and prune what feedback still needs:
# a set clock is trusted after a minute for the one, after an hour for the other.
_EXPIRY_TRIAL_SECONDS = 60.0
_PRUNING_TRIAL_SECONDS = 3600.0


class ImpressionExpirer:
    """Expires impressions whose window closed without feedback, and prunes old ones.

    Parameters
    ----------
    surface_id
        The surface's id in the store.
    store, committer
        Where impressions are found, and their outcomes committed.
    tracker
        Returns the tracker of this process's impressions.
    clock
        Returns the time in seconds since 1970.
    reached
        A time that has certainly come: that of the latest change in the store, in seconds since 1970.
    is_idle
        Returns whether the engine is unused: it is not scanned periodically then.
    on_due
        Called when `due_in` decreased for another reason than time.
    """

    def __init__(
        self,
        surface_id: int,
        store: Store,
        committer: GroupCommitter,
        tracker: Callable[[], FeedbackTracker],
        *,
        clock: Callable[[], float],
        reached: float,
        is_idle: Callable[[], bool] = lambda: False,
        on_due: Callable[[], None] = lambda: None,
    ) -> None:
        self._surface_id = surface_id
        self._store = store
        self._committer = committer
        self._tracker = tracker
        self._clock = clock
        self._expiry_clock = TrustedClock(clock, reached, _EXPIRY_TRIAL_SECONDS)
        self._pruning_clock = TrustedClock(clock, reached, _PRUNING_TRIAL_SECONDS)
        self._is_idle = is_idle
        self._on_due = on_due
        self._monotonic = time.monotonic if clock is time.time else clock
        self._expired_until = 0.0
        self._next_scan = self._next_pruning = 0.0
        self._being_expired: set[bytes] = set()  # keys, which are still pending in the store
        self._has_failed = False  # whether one of them could not be committed

    def due_in(self) -> float:
        """Return the number of seconds until `run` has work; infinity while outcomes are being committed."""
        if self._being_expired:
            return inf
        if self._has_failed:
            self._has_failed = False
            self._next_scan = min(self._next_scan, self._monotonic() + _MIN_SCAN_SECONDS)
        is_idle = self._is_idle()
        return min(
            self._seconds_to(self._next_scan, inf if is_idle else SCAN_SECONDS),
            inf if is_idle and self._next_pruning else self._seconds_to(self._next_pruning, _PRUNE_SECONDS),
            self._tracker().closes_in(now=self._clock()),
        )

    def run(self, surface: Surface) -> None:
        """Expire and prune impressions, by the surface's settings.

        The store is read only if impressions of this process closed without feedback, or a scan is due.
        """
        prunes = self._seconds_to(self._next_pruning, _PRUNE_SECONDS) <= 0.0
        unreported = self._tracker().close(now=self._clock())
        scan_period = inf if self._is_idle() else SCAN_SECONDS
        if not (unreported or prunes or self._seconds_to(self._next_scan, scan_period) <= 0.0):
            return
        until = self._expiry_clock.now() - _GRACE_SECONDS
        prune_before_ms = _milliseconds(self._pruning_clock.now() - surface.keep_seconds)
        if prunes:
            self._expired_until = 0.0  # a store that was down for long may have got impressions very late
        self._next_scan = self._monotonic() + _MIN_SCAN_SECONDS
        self._has_failed = False
        if self._expire(surface, until) >= prune_before_ms and prunes:  # all that is pruned has expired
            self._next_pruning = self._monotonic() + _PRUNE_SECONDS
            self._store.prune(self._surface_id, before_ms=prune_before_ms)

    def _seconds_to(self, moment: float, period: float) -> float:
        """Return the number of seconds until a moment; 0 if it has come, or the clock was set back."""
        left = moment - self._monotonic()
        return left if 0.0 < left <= period else 0.0

    def _seconds_to_next_scan(self, coming: Sequence[Impression]) -> float:
        """Return the number of seconds until the next scan.

        That is when the next pending impression expires, when the clock's trial ends, or else after a period
        that differs between surfaces, so that not all of them scan at once. An idle surface is not scanned
        periodically.
        """
        seconds = inf
        if not self._is_idle():
            seconds = SCAN_SECONDS * (0.75 + 0.25 * (self._surface_id * _GOLDEN_RATIO % 1.0))
        if self._expiry_clock.trial_seconds_left > 0.0:
            seconds = min(seconds, self._expiry_clock.trial_seconds_left)
        for impression in coming:
            expires_in = self._expiry_clock.seconds_until(impression.expires_at_ms / 1000 + _GRACE_SECONDS)
            seconds = min(seconds, max(expires_in, _MIN_SCAN_SECONDS))
        return seconds

    def _first_pending(self, since: float, until: float) -> list[Impression]:
        """Return the first pending impression that expires before the next scan, if any."""
        horizon = _milliseconds(max(until, self._clock()) + SCAN_SECONDS)
        return self._store.pending_impressions(
            self._surface_id,
            since_ms=_milliseconds(since),
            until_ms=_MAX_EXPIRES_AT_MS if self._is_idle() else horizon,
            limit=1,
        )

    def _expire(self, surface: Surface, until: float) -> int:
        """Expire pending impressions; return the expiry of the first of them in milliseconds since 1970.

        Returns `until` if there are none.
        """
        since = min(self._expired_until, until) - _MAX_LATE_SECONDS
        outcome = NOT_CLICKED if surface.unreported == "not-clicked" else DISCARDED
        expired: list[Impression] = []
        coming = self._first_pending(since, until)  # the only query if the surface has no traffic
        if coming and coming[0].expires_at_ms < _milliseconds(until):
            expired = self._store.pending_impressions(
                self._surface_id,
                since_ms=_milliseconds(since),
                until_ms=_milliseconds(until),
                limit=_MAX_EXPIRED_AT_ONCE,
            )
            coming = self._first_pending(until, until)
        for impression in expired:
            self._being_expired.add(impression.key)
            try:
                self._committer.submit(Event(impression, outcome), partial(self._committed, impression.key))
            except StoreUnavailableError:
                self._being_expired.discard(impression.key)
                raise
        if len(expired) < _MAX_EXPIRED_AT_ONCE:
            self._expired_until = until
            self._next_scan = self._monotonic() + self._seconds_to_next_scan(coming)
        else:
            self._next_scan = 0.0  # as soon as these are committed
        return expired[0].expires_at_ms if expired else _milliseconds(until)

    def _committed(self, key: bytes, outcome: CommitOutcome) -> None:
        self._being_expired.discard(key)
        if not isinstance(outcome, CommitStatus):
            self._has_failed = True  # not `_next_scan`, which another thread may be about to assign
        if not self._being_expired:
            self._on_due()


def _milliseconds(seconds: float) -> int:
    return int(max(0.0, seconds) * 1000)
