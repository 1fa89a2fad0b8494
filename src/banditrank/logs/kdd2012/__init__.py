"""The click log of KDD Cup 2012 track 2: extraction, estimation and diagnosis of the paper's Table 1."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.logs.kdd2012._diagnosis import Diagnosis, diagnose
    from banditrank.logs.kdd2012._estimation import EstimatedProblem, estimated_problem
    from banditrank.logs.kdd2012._extraction import Extraction, extract
    from banditrank.logs.kdd2012._sample_log import SampleLog, write_sample_log

__all__ = [
    "Diagnosis",
    "EstimatedProblem",
    "Extraction",
    "SampleLog",
    "diagnose",
    "estimated_problem",
    "extract",
    "write_sample_log",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_diagnosis": (
                "Diagnosis",
                "diagnose",
            ),
            "_estimation": (
                "EstimatedProblem",
                "estimated_problem",
            ),
            "_extraction": (
                "Extraction",
                "extract",
            ),
            "_sample_log": (
                "SampleLog",
                "write_sample_log",
            ),
        },
    )
