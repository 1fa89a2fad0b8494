"""Surfaces that rank and learn in this process."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.engine._api_keys import create_key
    from banditrank.engine._engine import Engine
    from banditrank.engine._experiment import Arm, SurfaceExperiment, arm_at, assign
    from banditrank.engine._experiment_report import (
        ArmReport,
        ExperimentReport,
        IntervalEstimate,
        Lift,
        UserTypeLift,
        report_experiment,
    )
    from banditrank.engine._experiment_results import ExperimentResults, PeriodReport
    from banditrank.engine._import_export import export_surface, import_surface
    from banditrank.engine._observers import IssuedImpression, SurfaceObserver
    from banditrank.engine._surface import ItemChanges, Surface

__all__ = [
    "Arm",
    "ArmReport",
    "Engine",
    "ExperimentReport",
    "ExperimentResults",
    "IntervalEstimate",
    "IssuedImpression",
    "ItemChanges",
    "Lift",
    "PeriodReport",
    "Surface",
    "SurfaceExperiment",
    "SurfaceObserver",
    "UserTypeLift",
    "arm_at",
    "assign",
    "create_key",
    "export_surface",
    "import_surface",
    "report_experiment",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_api_keys": ("create_key",),
            "_engine": ("Engine",),
            "_experiment": (
                "Arm",
                "SurfaceExperiment",
                "arm_at",
                "assign",
            ),
            "_experiment_report": (
                "ArmReport",
                "ExperimentReport",
                "IntervalEstimate",
                "Lift",
                "UserTypeLift",
                "report_experiment",
            ),
            "_experiment_results": (
                "ExperimentResults",
                "PeriodReport",
            ),
            "_import_export": (
                "export_surface",
                "import_surface",
            ),
            "_observers": (
                "IssuedImpression",
                "SurfaceObserver",
            ),
            "_surface": (
                "ItemChanges",
                "Surface",
            ),
        },
    )
