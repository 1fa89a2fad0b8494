"""Background tasks of a surface, retried with exponential backoff."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from banditrank.engine._failure_log import log_failure
from banditrank.errors import StoreError, StoreUnavailableError, describe_error, one_line

_MIN_SECONDS = 1.0
_MAX_SECONDS = 30.0

logger = logging.getLogger(__name__)


class Backoff:
    """Retry with exponential backoff; log the first failure only.

    A context manager that suppresses errors, except `StoreUnavailableError`, which the sync loop logs.

    Parameters
    ----------
    failure
        Log message of a failure.
    **fields
        Fields of the log record, in addition to the error.

    Attributes
    ----------
    error
        Latest error in one line, None after a success.

    Examples
    --------
    >>> backoff = Backoff("division failed")
    >>> with backoff:
    ...     1 / 0
    >>> backoff.error, backoff.is_due
    ('ZeroDivisionError: division by zero', False)
    """

    def __init__(self, failure: str, **fields: object) -> None:
        self._failure = failure
        self._fields = fields
        self._wait_seconds = self._retry_at = 0.0
        self.error: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether the next attempt may start."""
        return self.due_in <= 0.0

    @property
    def due_in(self) -> float:
        """Seconds until the next attempt may start."""
        return max(0.0, self._retry_at - time.monotonic()) if self._retry_at else 0.0

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if error is None:
            self._wait_seconds = self._retry_at = 0.0
            self.error = None
            return False
        if isinstance(error, StoreUnavailableError) or not isinstance(error, Exception):
            self._retry_at = time.monotonic() + _MIN_SECONDS
            return False
        self._wait_seconds = min(max(_MIN_SECONDS, 2 * self._wait_seconds), _MAX_SECONDS)
        self._retry_at = time.monotonic() + self._wait_seconds
        is_expected = isinstance(error, StoreError)
        if self.error is None:
            log_failure(logger, logging.ERROR, self._failure, error, **self._fields)
        self.error = one_line(error) if is_expected else describe_error(error)
        return True


class PeriodicTask:
    """Runs a function when it is due, with backoff after failures.

    Parameters
    ----------
    failure
        Log message of a failure.
    needed_in
        Returns the number of seconds until the function should run; infinity if that depends on an event.
    run
        The function.
    **fields
        Fields of the log record.
    """

    def __init__(
        self, failure: str, needed_in: Callable[[], float], run: Callable[[], None], **fields: object
    ) -> None:
        self._backoff = Backoff(failure, **fields)
        self._needed_in = needed_in
        self._run = run

    def due_in(self) -> float:
        """Return the number of seconds until the task is due; infinity if that depends on an event."""
        return max(self._backoff.due_in, self._needed_in())

    def run_if_due(self) -> None:
        """Run the function if it is due."""
        if self.due_in() <= 0.0:
            with suppress(StoreUnavailableError), self._backoff:  # the sync loop logs that the store is down
                self._run()
