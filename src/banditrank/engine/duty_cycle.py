"""How often something is done that may take long: not too often, and not for too much of the time."""

import time

_LEAST_SECONDS = 1.0
_MOST_SECONDS = 30.0


class DutyCycle:
    """Says when something may be done again.

    Parameters
    ----------
    share
        Of the time that it may take, unless it takes more than so much of half a minute.

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
        self._begin = self._next = 0.0
        self._is_first = True

    @property
    def is_due(self) -> bool:
        """Whether it is time."""
        return self.due_in <= 0.0

    @property
    def due_in(self) -> float:
        """Seconds until it is time, 0 if it is."""
        return max(0.0, self._next - time.monotonic())

    def __enter__(self) -> None:
        self._begin = time.monotonic()

    def __exit__(self, *_: object) -> None:
        end = time.monotonic()
        # The first time on a machine formulas are compiled, which says nothing of the next.
        took = 0.0 if self._is_first else end - self._begin
        self._is_first = False
        self._next = end + min(max(_LEAST_SECONDS, took / self._share), _MOST_SECONDS)
