"""Log records of failures, with their reason in every format."""

import logging

from banditrank.errors import StoreError, one_line


def log_failure(logger: logging.Logger, level: int, failure: str, error: Exception, **fields: object) -> None:
    """Log a failure with its reason, once in the message and once as the field ``error``.

    An expected error has its reason in the message, which formats without fields show as well, and any other
    error has a traceback.

    Parameters
    ----------
    logger, level
        Where the record goes, and its level.
    failure
        What failed: ``refresh failed``.
    error
        Why.
    **fields
        Other fields of the record.
    """
    reason, is_expected = one_line(error), isinstance(error, StoreError)
    message = f"{failure}: {reason}" if is_expected else failure
    logger.log(level, message, exc_info=None if is_expected else error, extra={**fields, "error": reason})
