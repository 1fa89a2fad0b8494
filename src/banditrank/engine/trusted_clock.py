"""How late it surely is: what is settled or forgotten by a clock that is ahead cannot be undone."""

import time
from collections.abc import Callable

_JUMP_SECONDS = 30.0  # by which a clock that is not set differs from another between two looks at it


class TrustedClock:
    """A clock that is believed after a trial: at the start, and whenever it was set.

    Until then no more time than passes is added to what is known.

    Parameters
    ----------
    clock
        Gives the time in seconds since 1970.
    known
        A time that has surely come.
    trial_seconds
        How long the clock must go steadily.
    steady
        Gives the time in seconds since any moment, and is never set. The machine's if left out; a clock
        that is not the machine's is as steady as it is.

    Examples
    --------
    >>> passed = [0.0]
    >>> sure = TrustedClock(lambda: 5000.0 + passed[0], 1000.0, 60.0, lambda: passed[0])
    >>> sure.now()
    1000.0
    >>> passed[0] = 59.0
    >>> sure.now()
    1059.0
    >>> passed[0] = 60.0
    >>> sure.now()
    5060.0
    """

    def __init__(
        self,
        clock: Callable[[], float],
        known: float,
        trial_seconds: float,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        machine = time.monotonic if clock is time.time else clock
        self._steady = machine if steady is None else steady
        self._trial_seconds = trial_seconds
        self._sure = known
        self._seen, self._at = clock(), self._steady()
        self._trial_ends = self._at + trial_seconds

    def now(self) -> float:
        """Return the time in seconds since 1970, or an earlier one while the clock is on trial."""
        seen, at = self._clock(), self._steady()
        passed = at - self._at
        if abs(seen - self._seen - passed) > _JUMP_SECONDS:
            self._trial_ends = at + self._trial_seconds
        self._sure = seen if at >= self._trial_ends else min(seen, self._sure + passed)
        self._seen, self._at = seen, at
        return self._sure

    @property
    def trial_seconds_left(self) -> float:
        """Seconds until the clock is believed, as of the latest call of `now`; 0 if it is."""
        return max(0.0, self._trial_ends - self._at)

    def seconds_until(self, moment: float) -> float:
        """Return in how many seconds `now` returns a time or a later one; 0 if it does already.

        Examples
        --------
        >>> sure = TrustedClock(lambda: 5000.0, 1000.0, 60.0, lambda: 0.0)
        >>> [sure.seconds_until(moment) for moment in (900.0, 1010.0, 4000.0, 5100.0)]
        [0.0, 10.0, 60.0, 100.0]
        """
        ahead = max(0.0, moment - self.now())
        return min(ahead, max(self.trial_seconds_left, moment - self._seen))
