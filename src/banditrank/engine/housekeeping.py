"""What becomes of a surface's rankings in time: they are settled without feedback, and forgotten."""

import time
from collections.abc import Callable

from banditrank.engine.journal import Answer, Journal
from banditrank.engine.surface import Surface
from banditrank.engine.watch import Watch
from banditrank.storage.base import Store
from banditrank.storage.records import DISCARDED, NOT_CLICKED, Entry

_SETTLING_SECONDS = 1.0
_GRACE_SECONDS = 5.0  # after a window closed: clocks of replicas differ, and commits take time
_LATEST_NOTE_SECONDS = 600.0  # by which a shown ranking may be noted late, after a store was down
_FORGET_SECONDS = 3600.0
_JUMP_SECONDS = 30.0  # by which a clock that is not set differs from another between two looks at it
_MOST_AT_ONCE = 1000


class Housekeeping:
    """Settles rankings whose window closed without feedback, and forgets those that are old.

    Parameters
    ----------
    number
        The surface's.
    store, journal
        Where rankings are found, and settled.
    clock
        Gives the time in seconds since 1970.
    watch
        Where it is noted how many were settled.
    """

    def __init__(
        self, number: int, store: Store, journal: Journal, clock: Callable[[], float], watch: Watch
    ) -> None:
        self._number = number
        self._store = store
        self._journal = journal
        self._clock = clock
        self._watch = watch
        # A clock that is not the machine's is as steady as it is.
        self._steady = time.monotonic if clock is time.time else clock
        self._ahead = clock() - self._steady()
        self._settled_until = 0.0
        self._next_settling = self._next_forgetting = 0.0

    def is_due(self) -> bool:
        """Return whether it is time to look for rankings."""
        wait = self._next_settling - self._clock()
        return not 0.0 < wait <= _SETTLING_SECONDS  # more if the clock was set back

    def tend(self, surface: Surface) -> None:
        """Settle what lapsed, and forget what is old, by the settings of the surface."""
        now = self._clock()
        if self._has_jumped(now):  # what is forgotten cannot be counted any more: wait until that is sure
            self._next_forgetting = now + _FORGET_SECONDS
        forgets = now >= self._next_forgetting
        if forgets:
            self._settled_until = 0.0  # a store that was down for long may have noted rankings very late
        self._next_settling = now + _SETTLING_SECONDS
        old = _milliseconds(now - surface.keep_seconds)
        # All that is old was settled before.
        if self._settle(surface, now - _GRACE_SECONDS) >= old and forgets:
            self._next_forgetting = now + _FORGET_SECONDS
            self._store.forget(self._number, before=old)

    def _has_jumped(self, now: float) -> bool:
        """Return whether the clock was set since it was asked the last time."""
        ahead = now - self._steady()
        jump, self._ahead = ahead - self._ahead, ahead
        return abs(jump) > _JUMP_SECONDS

    def _settle(self, surface: Surface, until: float) -> int:
        """Settle rankings whose window closed without feedback; return when the first of them lapsed.

        In milliseconds since 1970; if there is none, until when it was looked for them.
        """
        since = _milliseconds(min(self._settled_until, until) - _LATEST_NOTE_SECONDS)
        outcome = NOT_CLICKED if surface.unreported == "not-clicked" else DISCARDED
        lapsed = self._store.open_entries(
            self._number, since=since, until=_milliseconds(until), limit=_MOST_AT_ONCE
        )
        for entry in lapsed:
            self._journal.settle(Entry(entry.shown, outcome), _nobody_waits)
        self._watch.unreported += len(lapsed)
        if len(lapsed) < _MOST_AT_ONCE:
            self._settled_until = until
        else:
            self._next_settling = 0.0
        return lapsed[0].shown.lapses if lapsed else _milliseconds(until)


def _milliseconds(seconds: float) -> int:
    return int(max(0.0, seconds) * 1000)


def _nobody_waits(_: Answer) -> None:
    """Do nothing: what could not be settled is found again the next time."""
