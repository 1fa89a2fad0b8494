"""A clock that a sudden jump forward does not move: expiry and pruning cannot be undone."""

import time
from collections.abc import Callable

_JUMP_SECONDS = 30.0  # difference between two clocks that means that one of them was set


class TrustedClock:
    """A clock that is trusted after a trial period: at the start, and whenever it was set.

    During the trial, the returned time advances from the last trusted time at the pace of a monotonic clock.

    Parameters
    ----------
    clock
        Returns the time in seconds since 1970.
    reached
        A time that has certainly come, in seconds since 1970.
    trial_seconds
        Length of the trial.
    monotonic
        Returns seconds since any moment, and is never set. By default the machine's monotonic clock for
        `time.time`, and `clock` itself for any other clock.

    Examples
    --------
    >>> passed = [0.0]
    >>> clock = TrustedClock(lambda: 5000.0 + passed[0], 1000.0, 60.0, lambda: passed[0])
    >>> clock.now()
    1000.0
    >>> passed[0] = 59.0
    >>> clock.now()
    1059.0
    >>> passed[0] = 60.0
    >>> clock.now()
    5060.0
    """

    def __init__(
        self,
        clock: Callable[[], float],
        reached: float,
        trial_seconds: float,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        default = time.monotonic if clock is time.time else clock
        self._monotonic = default if monotonic is None else monotonic
        self._trial_seconds = trial_seconds
        self._trusted = reached
        self._read, self._read_at = clock(), self._monotonic()
        self._trial_ends_at = self._read_at + trial_seconds

    def now(self) -> float:
        """Return the time in seconds since 1970, or an earlier one during the trial."""
        read, read_at = self._clock(), self._monotonic()
        passed = read_at - self._read_at
        if abs(read - self._read - passed) > _JUMP_SECONDS:
            self._trial_ends_at = read_at + self._trial_seconds
        self._trusted = read if read_at >= self._trial_ends_at else min(read, self._trusted + passed)
        self._read, self._read_at = read, read_at
        return self._trusted

    @property
    def trial_seconds_left(self) -> float:
        """Seconds until the trial ends, as of the latest call of `now`; 0 if it has."""
        return max(0.0, self._trial_ends_at - self._read_at)

    def seconds_until(self, moment: float) -> float:
        """Return the number of seconds until `now` reaches a time in seconds since 1970; 0 if it has.

        Examples
        --------
        >>> clock = TrustedClock(lambda: 5000.0, 1000.0, 60.0, lambda: 0.0)
        >>> [clock.seconds_until(moment) for moment in (900.0, 1010.0, 4000.0, 5100.0)]
        [0.0, 10.0, 60.0, 100.0]
        """
        ahead = max(0.0, moment - self.now())
        return min(ahead, max(self.trial_seconds_left, moment - self._read))
