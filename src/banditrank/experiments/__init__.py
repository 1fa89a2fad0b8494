"""Studies that reproduce the paper and compare policies, with their reports."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.experiments._compare.compare import compare
    from banditrank.experiments._compare.suites import Suite
    from banditrank.experiments._reproduce import find_studies, reproduce

__all__ = [
    "Suite",
    "compare",
    "find_studies",
    "reproduce",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_compare.compare": ("compare",),
            "_compare.suites": ("Suite",),
            "_reproduce": ("find_studies", "reproduce"),
        },
    )
