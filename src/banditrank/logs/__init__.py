"""Click logs: counts in bounded memory, diagnosis, replay of policies, and surfaces that start learned."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.logs._count_log import count_log
    from banditrank.logs._diagnosis import Finding, LogDiagnosis, UserTypeDiagnosis, diagnose
    from banditrank.logs._drift import Drift, DriftingItem, find_drift
    from banditrank.logs._estimated_problem import estimate_problem
    from banditrank.logs._log_columns import LogColumns
    from banditrank.logs._replay import Replay, replay
    from banditrank.logs._report import LogReport, log_report
    from banditrank.logs._swap_plan import SwapProposal
    from banditrank.logs._user_types import ColumnAssessment, UserTypeAssessment, assess_user_types
    from banditrank.logs._warm_start import WarmStart, warm_start
    from banditrank.logs._withholding import (
        KnownEvaluation,
        Withheld,
        evaluate_known,
        find_withheld,
        withhold_estimates,
    )

__all__ = [
    "ColumnAssessment",
    "Drift",
    "DriftingItem",
    "Finding",
    "KnownEvaluation",
    "LogColumns",
    "LogDiagnosis",
    "LogReport",
    "Replay",
    "SwapProposal",
    "UserTypeAssessment",
    "UserTypeDiagnosis",
    "WarmStart",
    "Withheld",
    "assess_user_types",
    "count_log",
    "diagnose",
    "estimate_problem",
    "evaluate_known",
    "find_drift",
    "find_withheld",
    "log_report",
    "replay",
    "warm_start",
    "withhold_estimates",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_count_log": ("count_log",),
            "_diagnosis": ("Finding", "LogDiagnosis", "UserTypeDiagnosis", "diagnose"),
            "_drift": ("Drift", "DriftingItem", "find_drift"),
            "_estimated_problem": ("estimate_problem",),
            "_log_columns": ("LogColumns",),
            "_replay": ("Replay", "replay"),
            "_report": ("LogReport", "log_report"),
            "_swap_plan": ("SwapProposal",),
            "_user_types": ("ColumnAssessment", "UserTypeAssessment", "assess_user_types"),
            "_warm_start": ("WarmStart", "warm_start"),
            "_withholding": (
                "KnownEvaluation",
                "Withheld",
                "evaluate_known",
                "find_withheld",
                "withhold_estimates",
            ),
        },
    )
