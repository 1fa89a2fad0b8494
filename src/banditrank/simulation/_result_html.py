"""HTML of simulation results in notebooks."""

import numpy as np
from numpy.typing import NDArray

from banditrank._html import panel, table
from banditrank._text import plural
from banditrank.simulation._result import SimulationResult


def result_html(result: SimulationResult) -> str:
    """Return a table of the regret and the share of optimal rounds at the horizon, over the replications."""
    finished = len(result.replications)
    replications = plural(finished, "replication")
    if not result.is_complete:
        replications = f"{finished:,} of {plural(result.requested, 'replication')} finished"
    facts = [result.problem_summary(), plural(result.horizon, "round"), replications, f"seed {result.seed}"]
    rows = []
    if finished:
        rows.append(["regret", *_summary(result.final_regret, ",.4g")])
        rows.append(["share of optimal rounds", *_summary(result.optimal_rate[:, -1], ".1%")])
    headings = ["at the horizon", "mean", "std. dev.", "10th percentile", "median", "90th percentile"]
    summary = table("over the replications", headings, rows)
    return panel("SimulationResult", result.label, facts, summary, notes=result.violations)


def _summary(values: NDArray[np.float64], style: str) -> list[str]:
    """Return the mean, standard deviation and quantiles of the values of the replications."""
    spread = values.std(ddof=min(1, len(values) - 1))
    return [f"{number:{style}}" for number in (values.mean(), spread, *np.quantile(values, [0.1, 0.5, 0.9]))]
