"""What becomes of a surface's rankings in time: they are settled without feedback, and forgotten."""

from collections.abc import Callable
from functools import partial

from banditrank.engine.journal import Answer, Journal
from banditrank.engine.sure_time import SureTime
from banditrank.engine.surface import Surface
from banditrank.engine.watch import Watch
from banditrank.errors import StoreUnavailableError
from banditrank.storage.base import Store
from banditrank.storage.records import DISCARDED, NOT_CLICKED, Entry

_SETTLE_SECONDS = 1.0
_GRACE_SECONDS = 5.0  # after a window closed: clocks of replicas differ, and commits take time
_LATEST_NOTE_SECONDS = 600.0  # by which a shown ranking may be noted late, after a store was down
_FORGET_SECONDS = 3600.0
_MOST_AT_ONCE = 1000

# A clock that is ahead would close the windows of rankings that others just gave out, and have feedback
# refused until they are as late: it is believed after a minute with the one, after an hour with the other.
_SETTLING_TRIAL_SECONDS = 60.0
_FORGETTING_TRIAL_SECONDS = 3600.0


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
    known
        A time that has surely come: that of the latest change in the store, before this process made any.
    watch
        Where it is noted how many windows closed.
    """

    def __init__(
        self,
        number: int,
        store: Store,
        journal: Journal,
        clock: Callable[[], float],
        known: float,
        watch: Watch,
    ) -> None:
        self._number = number
        self._store = store
        self._journal = journal
        self._clock = clock
        self._watch = watch
        self._settling_time = SureTime(clock, known, _SETTLING_TRIAL_SECONDS)
        self._forgetting_time = SureTime(clock, known, _FORGETTING_TRIAL_SECONDS)
        self._settled_until = 0.0
        self._next_settling = self._next_forgetting = 0.0
        self._being_settled: set[bytes] = set()  # keys, which the store has as open still

    def is_due(self) -> bool:
        """Return whether it is time to look for rankings."""
        return not self._being_settled and self._has_come(self._next_settling, _SETTLE_SECONDS)

    def tend(self, surface: Surface) -> None:
        """Settle what lapsed, and forget what is old, by the settings of the surface."""
        until = self._settling_time.now() - _GRACE_SECONDS
        old = _milliseconds(self._forgetting_time.now() - surface.keep_seconds)
        forgets = self._has_come(self._next_forgetting, _FORGET_SECONDS)
        if forgets:
            self._settled_until = 0.0  # a store that was down for long may have noted rankings very late
        self._next_settling = self._clock() + _SETTLE_SECONDS
        self._watch.awaited.close(now=self._clock())
        if self._settle(surface, until) >= old and forgets:  # all that is old was settled before
            self._next_forgetting = self._clock() + _FORGET_SECONDS
            self._store.forget(self._number, before=old)

    def _has_come(self, moment: float, period: float) -> bool:
        return not 0.0 < moment - self._clock() <= period  # more if the clock was set back

    def _settle(self, surface: Surface, until: float) -> int:
        """Settle rankings whose window closed without feedback; return when the first of them lapsed.

        In milliseconds since 1970; if there is none, until when it was looked for them.
        """
        since = _milliseconds(min(self._settled_until, until) - _LATEST_NOTE_SECONDS)
        outcome = NOT_CLICKED if surface.unreported == "not-clicked" else DISCARDED
        lapsed = self._store.open_entries(
            self._number, since=since, until=_milliseconds(until), limit=_MOST_AT_ONCE
        )
        for shown, _ in lapsed:
            self._being_settled.add(shown.key)
            try:
                self._journal.settle(Entry(shown, outcome), partial(self._settled, shown.key))
            except StoreUnavailableError:
                self._being_settled.discard(shown.key)
                raise
        if len(lapsed) < _MOST_AT_ONCE:
            self._settled_until = until
        else:
            self._next_settling = 0.0  # as soon as these are settled
        return lapsed[0].shown.lapses if lapsed else _milliseconds(until)

    def _settled(self, key: bytes, _: Answer) -> None:
        """Take note that a ranking was settled; if it was not, it is found again the next time."""
        self._being_settled.discard(key)


def _milliseconds(seconds: float) -> int:
    return int(max(0.0, seconds) * 1000)
