"""Additive counts of displays, rewards and arrivals, from which policies learn."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.counts._counts import Counts
    from banditrank.counts._forgetting import Forgetting, as_forgetting, discount, sliding_window

__all__ = [
    "Counts",
    "Forgetting",
    "as_forgetting",
    "discount",
    "sliding_window",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_counts": ("Counts",),
            "_forgetting": (
                "Forgetting",
                "as_forgetting",
                "discount",
                "sliding_window",
            ),
        },
    )
