"""Simulation of policies: the compiled loop, replications, results and figures."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.simulation._backends.base import Backend
    from banditrank.simulation._backends.ray_cluster import RayBackend
    from banditrank.simulation._graves_lai import graves_lai_constant
    from banditrank.simulation._plots import draw_final_regret, draw_regret, plot_regret, save_plot
    from banditrank.simulation._regret import equal_regret, personalized_regret
    from banditrank.simulation._result import SimulationResult
    from banditrank.simulation._run import replicate
    from banditrank.simulation._simulate import simulate

__all__ = [
    "Backend",
    "RayBackend",
    "SimulationResult",
    "draw_final_regret",
    "draw_regret",
    "equal_regret",
    "graves_lai_constant",
    "personalized_regret",
    "plot_regret",
    "replicate",
    "save_plot",
    "simulate",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_backends.base": ("Backend",),
            "_backends.ray_cluster": ("RayBackend",),
            "_graves_lai": ("graves_lai_constant",),
            "_plots": (
                "draw_final_regret",
                "draw_regret",
                "plot_regret",
                "save_plot",
            ),
            "_regret": (
                "equal_regret",
                "personalized_regret",
            ),
            "_result": ("SimulationResult",),
            "_run": ("replicate",),
            "_simulate": ("simulate",),
        },
    )
