"""Limit of the share of time that repeated work may take."""

import time

_MIN_SECONDS = 1.0
_MAX_SECONDS = 30.0


class DutyCycle:
    """Times repeated work so that it takes a limited share of the time.

    A context manager around the work. It is due at most once a second, and at least every 30 seconds however
    long it takes.

    Parameters
    ----------
    share
        Share of the time that the work may take.

    Examples
    --------
    >>> duty_cycle = DutyCycle(0.05)
    >>> duty_cycle.is_due
    True
    >>> with duty_cycle:
    ...     pass
    >>> duty_cycle.is_due
    False
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._started_at = self._due_at = 0.0
        self._is_first = True

    @property
    def is_due(self) -> bool:
        """Whether the work may run again."""
        return self.due_in <= 0.0

    @property
    def due_in(self) -> float:
        """Seconds until the work may run again."""
        return max(0.0, self._due_at - time.monotonic())

    def __enter__(self) -> None:
        self._started_at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        end = time.monotonic()
        # The first run may compile formulas, which takes longer than any later run.
        seconds = 0.0 if self._is_first else end - self._started_at
        self._is_first = False
        self._due_at = end + min(max(_MIN_SECONDS, seconds / self._share), _MAX_SECONDS)
