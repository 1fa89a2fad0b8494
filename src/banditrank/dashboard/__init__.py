"""Monitoring, assessment and explanation of surfaces, for people."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.dashboard._estimates_report import (
        EstimatesReport,
        ItemEstimate,
        PositionEstimate,
        UserTypeEstimates,
    )
    from banditrank.dashboard._explain import Explanation
    from banditrank.dashboard._surface_monitor import SurfaceMonitor, SurfaceMonitors
    from banditrank.dashboard._treatment_report import TreatmentReport

__all__ = [
    "EstimatesReport",
    "Explanation",
    "ItemEstimate",
    "PositionEstimate",
    "SurfaceMonitor",
    "SurfaceMonitors",
    "TreatmentReport",
    "UserTypeEstimates",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_estimates_report": (
                "EstimatesReport",
                "ItemEstimate",
                "PositionEstimate",
                "UserTypeEstimates",
            ),
            "_explain": ("Explanation",),
            "_surface_monitor": (
                "SurfaceMonitor",
                "SurfaceMonitors",
            ),
            "_treatment_report": ("TreatmentReport",),
        },
    )
