"""banditrank learns from clicks alone which item to show in which position to which kind of user.

The names below are imported on first use: ``import banditrank`` and ``banditrank --help`` take no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "MAXIMIN": "utilities.utility",
    "NASH": "utilities.utility",
    "UTILITARIAN": "utilities.utility",
    "BanditRankError": "errors",
    "save_plot": "simulation.plots",
    "equal_regret": "simulation.regret",
    "personalized_regret": "simulation.regret",
    "ClickModel": "model.click_models",
    "UnknownNameError": "errors",
    "BernoulliRewards": "model.rewards",
    "BetaRewards": "model.rewards",
    "Counts": "counts.counts",
    "Estimates": "estimators.estimates",
    "GreedyRank": "policies.greedy_rank",
    "InvalidInputError": "errors",
    "Oracle": "policies.oracle",
    "Policy": "policies.base",
    "Problem": "model.problem",
    "SimulationResult": "simulation.result",
    "SingleLook": "model.click_models",
    "TypeBlindUCB": "policies.type_blind",
    "UCBRank": "policies.ucb_rank",
    "UniformRandom": "policies.uniform",
    "UnsolvableError": "errors",
    "Utility": "utilities.utility",
    "alpha_fair": "utilities.utility",
    "best_equal_ranking": "solvers.solve",
    "best_personalized_rankings": "model.values",
    "as_utility": "utilities.utility",
    "equality_report": "solvers.equality",
    "EqualityReport": "solvers.equality",
    "estimate": "estimators.estimates",
    "load_problem": "model.catalog",
    "pareto_frontier": "solvers.frontier",
    "FrontierPoint": "solvers.frontier",
    "make_problem": "model.generators",
    "kdd2012": "model.catalog",
    "plot_frontier": "solvers.frontier_plot",
    "plot_regret": "simulation.plots",
    "ramp": "utilities.utility",
    "sigmoid": "utilities.utility",
    "save_frontier_plot": "solvers.frontier_plot",
    "simulate": "simulation.simulate",
    "solve": "solvers.solve",
    "Solution": "solvers.solution",
    "Cascade": "model.click_models",
    "DependentClick": "model.click_models",
    "PositionBased": "model.click_models",
    "as_click_model": "model.click_models",
    "Timeline": "model.timeline",
    "make_timeline": "model.changes",
    "Forgetful": "policies.forgetful",
    "ConfidenceIntervals": "estimators.intervals",
    "confidence_intervals": "estimators.intervals",
    "make_policy": "policies.catalog",
    "Smoothing": "estimators.smoothing",
    "ThompsonRank": "policies.thompson_rank",
    "user_type_values": "model.values",
    "Ranker": "ranker",
    "Surface": "engine.surface",
    "open_store": "storage.factory",
}

__all__ = ["__version__", *_EXPORTS]  # noqa: PLE0604 - the keys are names

if TYPE_CHECKING:  # what tools for types and completion read; a test holds it equal to _EXPORTS
    from banditrank.counts.counts import Counts
    from banditrank.engine.surface import Surface
    from banditrank.errors import BanditRankError, InvalidInputError, UnknownNameError, UnsolvableError
    from banditrank.estimators.estimates import Estimates, estimate
    from banditrank.estimators.intervals import ConfidenceIntervals, confidence_intervals
    from banditrank.estimators.smoothing import Smoothing
    from banditrank.model.catalog import kdd2012, load_problem
    from banditrank.model.changes import make_timeline
    from banditrank.model.click_models import (
        Cascade,
        ClickModel,
        DependentClick,
        PositionBased,
        SingleLook,
        as_click_model,
    )
    from banditrank.model.generators import make_problem
    from banditrank.model.problem import Problem
    from banditrank.model.rewards import BernoulliRewards, BetaRewards
    from banditrank.model.timeline import Timeline
    from banditrank.model.values import best_personalized_rankings, user_type_values
    from banditrank.policies.base import Policy
    from banditrank.policies.catalog import make_policy
    from banditrank.policies.forgetful import Forgetful
    from banditrank.policies.greedy_rank import GreedyRank
    from banditrank.policies.oracle import Oracle
    from banditrank.policies.thompson_rank import ThompsonRank
    from banditrank.policies.type_blind import TypeBlindUCB
    from banditrank.policies.ucb_rank import UCBRank
    from banditrank.policies.uniform import UniformRandom
    from banditrank.ranker import Ranker
    from banditrank.simulation.plots import plot_regret, save_plot
    from banditrank.simulation.regret import equal_regret, personalized_regret
    from banditrank.simulation.result import SimulationResult
    from banditrank.simulation.simulate import simulate
    from banditrank.solvers.equality import EqualityReport, equality_report
    from banditrank.solvers.frontier import FrontierPoint, pareto_frontier
    from banditrank.solvers.frontier_plot import plot_frontier, save_frontier_plot
    from banditrank.solvers.solution import Solution
    from banditrank.solvers.solve import best_equal_ranking, solve
    from banditrank.storage.factory import open_store
    from banditrank.utilities.utility import (
        MAXIMIN,
        NASH,
        UTILITARIAN,
        Utility,
        alpha_fair,
        as_utility,
        ramp,
        sigmoid,
    )


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
