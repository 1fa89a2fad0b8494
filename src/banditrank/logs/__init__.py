"""Counts from click logs, in bounded memory, what they tell, and surfaces that start with them."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.logs._diagnosis import Diagnosis, Finding, SwapProposal, UserTypeDiagnosis, diagnose
    from banditrank.logs._drift import Drift, DriftingItem, find_drift
    from banditrank.logs._replay import Replay, replay
    from banditrank.logs._user_types import ColumnAssessment, UserTypeAssessment, assess_user_types
    from banditrank.logs._warm_start import WarmStart, warm_start

__all__ = [
    "ColumnAssessment",
    "Diagnosis",
    "Drift",
    "DriftingItem",
    "Finding",
    "Replay",
    "SwapProposal",
    "UserTypeAssessment",
    "UserTypeDiagnosis",
    "WarmStart",
    "assess_user_types",
    "diagnose",
    "find_drift",
    "replay",
    "warm_start",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_diagnosis": ("Diagnosis", "Finding", "SwapProposal", "UserTypeDiagnosis", "diagnose"),
            "_drift": ("Drift", "DriftingItem", "find_drift"),
            "_replay": ("Replay", "replay"),
            "_user_types": ("ColumnAssessment", "UserTypeAssessment", "assess_user_types"),
            "_warm_start": ("WarmStart", "warm_start"),
        },
    )
