"""Counts from click logs, in bounded memory."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.logs._count_log import count_log
    from banditrank.logs._log_columns import LogColumns

__all__ = [
    "LogColumns",
    "count_log",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_count_log": ("count_log",),
            "_log_columns": ("LogColumns",),
        },
    )
