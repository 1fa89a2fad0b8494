"""Something that is done for a surface from time to time, whatever becomes of the rest."""

from collections.abc import Callable
from contextlib import suppress

from banditrank.engine.attempts import Attempts
from banditrank.errors import StoreUnavailableError


class Chore:
    """Does something when it is due.

    Parameters
    ----------
    failed
        What it is to others if it cannot be done, for the log.
    is_needed
        Returns whether there is anything to be done.
    do
        Does it.
    """

    def __init__(self, failed: str, is_needed: Callable[[], bool], do: Callable[[], None]) -> None:
        self._attempts = Attempts(failed)
        self._is_needed = is_needed
        self._do = do

    def is_due(self) -> bool:
        """Return whether there is anything to be done, and it did not fail just now."""
        return self._attempts.is_due and self._is_needed()

    def tend(self) -> None:
        """Do it if it is due."""
        if self.is_due():
            with suppress(StoreUnavailableError), self._attempts:  # the keeper says if the store is down
                self._do()
