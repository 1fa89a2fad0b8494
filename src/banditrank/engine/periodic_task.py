"""Something that is done for a surface from time to time, whatever becomes of the rest."""

from collections.abc import Callable
from contextlib import suppress

from banditrank.engine.backoff import Backoff
from banditrank.errors import StoreUnavailableError


class PeriodicTask:
    """Does something when it is due.

    Parameters
    ----------
    failed
        What it is to others if it cannot be done, for the log.
    needed_in
        Returns the number of seconds until there is anything to be done; infinity if that depends on
        something else than time.
    do
        Does it.
    """

    def __init__(self, failed: str, needed_in: Callable[[], float], do: Callable[[], None]) -> None:
        self._backoff = Backoff(failed)
        self._needed_in = needed_in
        self._do = do

    def is_due(self) -> bool:
        """Return whether there is anything to be done, and it did not fail just now."""
        return self.due_in() <= 0.0

    def due_in(self) -> float:
        """Return the number of seconds until it is due; infinity if that depends on something else."""
        return max(self._backoff.due_in, self._needed_in())

    def tend(self) -> None:
        """Do it if it is due."""
        if self.is_due():
            with suppress(StoreUnavailableError), self._backoff:  # the keeper says if the store is down
                self._do()
