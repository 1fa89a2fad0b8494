"""Something that is tried again when it failed: ever more seldom, and it is said once."""

import logging
import time
from types import TracebackType

from banditrank.errors import StoreError, StoreUnavailableError, one_line, describe_error

_LEAST_SECONDS = 1.0
_MOST_SECONDS = 30.0

logger = logging.getLogger(__name__)


class Backoff:
    """Says when something may be tried again.

    What goes wrong within is not raised, unless it is that the store cannot be used: whoever tries knows
    best what else that holds up, and the keeper says so.

    Parameters
    ----------
    what
        What it is to others that it failed, for the log.

    Attributes
    ----------
    trouble
        What was wrong the last time; None if nothing was.

    Examples
    --------
    >>> backoff = Backoff("nothing was divided")
    >>> with backoff:
    ...     1 / 0
    >>> backoff.trouble, backoff.is_due
    ('ZeroDivisionError: division by zero', False)
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._wait = self._next = 0.0
        self.trouble: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether it is time."""
        return self.due_in <= 0.0

    @property
    def due_in(self) -> float:
        """Seconds until it is time, 0 if it is."""
        return max(0.0, self._next - time.monotonic()) if self._next else 0.0

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            self._wait = self._next = 0.0
            self.trouble = None
            return False
        if isinstance(error, StoreUnavailableError) or not isinstance(error, Exception):
            self._next = time.monotonic() + _LEAST_SECONDS
            return False
        self._wait = min(max(_LEAST_SECONDS, 2 * self._wait), _MOST_SECONDS)
        self._next = time.monotonic() + self._wait
        told = isinstance(error, StoreError)
        if self.trouble is None:
            logger.error("%s: %s", self._what, one_line(error), exc_info=None if told else error)
        self.trouble = one_line(error) if told else describe_error(error)
        return True
