"""Solvers: from scores to rankings, without learning."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.solvers._equality import EqualityReport, equality_report
    from banditrank.solvers._frontier import FrontierPoint, pareto_frontier
    from banditrank.solvers._frontier_plot import draw_frontier, plot_frontier, save_frontier_plot
    from banditrank.solvers._lottery.guarantees import KeptShare, LeastExposure
    from banditrank.solvers._lottery.lottery import GuaranteeReport, Lottery
    from banditrank.solvers._lottery.plot import plot_lottery, save_lottery_plot
    from banditrank.solvers._lottery.solve import solve_lottery
    from banditrank.solvers._solution import Solution
    from banditrank.solvers._solve import SOLVERS, best_equal_ranking, equal_value, solve

__all__ = [
    "SOLVERS",
    "EqualityReport",
    "FrontierPoint",
    "GuaranteeReport",
    "KeptShare",
    "LeastExposure",
    "Lottery",
    "Solution",
    "best_equal_ranking",
    "draw_frontier",
    "equal_value",
    "equality_report",
    "pareto_frontier",
    "plot_frontier",
    "plot_lottery",
    "save_frontier_plot",
    "save_lottery_plot",
    "solve",
    "solve_lottery",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_equality": (
                "EqualityReport",
                "equality_report",
            ),
            "_frontier": (
                "FrontierPoint",
                "pareto_frontier",
            ),
            "_frontier_plot": (
                "draw_frontier",
                "plot_frontier",
                "save_frontier_plot",
            ),
            "_lottery.guarantees": (
                "KeptShare",
                "LeastExposure",
            ),
            "_lottery.lottery": (
                "GuaranteeReport",
                "Lottery",
            ),
            "_lottery.plot": (
                "plot_lottery",
                "save_lottery_plot",
            ),
            "_lottery.solve": ("solve_lottery",),
            "_solution": ("Solution",),
            "_solve": (
                "SOLVERS",
                "best_equal_ranking",
                "equal_value",
                "solve",
            ),
        },
    )
