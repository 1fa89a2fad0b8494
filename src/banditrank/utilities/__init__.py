"""Collective utilities: utilitarian, Nash, α-fair, maximin, sigmoid, ramp and custom."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.utilities._utility import (
        MAXIMIN,
        NASH,
        UTILITARIAN,
        Utility,
        alpha_fair,
        as_utility,
        ramp,
        sigmoid,
    )

__all__ = [
    "MAXIMIN",
    "NASH",
    "UTILITARIAN",
    "Utility",
    "alpha_fair",
    "as_utility",
    "ramp",
    "sigmoid",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_utility": (
                "MAXIMIN",
                "NASH",
                "UTILITARIAN",
                "Utility",
                "alpha_fair",
                "as_utility",
                "ramp",
                "sigmoid",
            ),
        },
    )
