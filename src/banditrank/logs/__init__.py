"""Counts from click logs, in bounded memory, and what they tell."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.logs._diagnosis import Finding, LogDiagnosis, SwapProposal, UserTypeDiagnosis, diagnose
    from banditrank.logs._drift import Drift, DriftingItem, find_drift
    from banditrank.logs._user_types import ColumnAssessment, UserTypeAssessment, assess_user_types

__all__ = [
    "ColumnAssessment",
    "Drift",
    "DriftingItem",
    "Finding",
    "LogDiagnosis",
    "SwapProposal",
    "UserTypeAssessment",
    "UserTypeDiagnosis",
    "assess_user_types",
    "diagnose",
    "find_drift",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_diagnosis": ("Finding", "LogDiagnosis", "SwapProposal", "UserTypeDiagnosis", "diagnose"),
            "_drift": ("Drift", "DriftingItem", "find_drift"),
            "_user_types": ("ColumnAssessment", "UserTypeAssessment", "assess_user_types"),
        },
    )
