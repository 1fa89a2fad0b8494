"""Analysis of the regret curves."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._curves import (
    QUANTILE_HEADINGS,
    SUBLINEAR,
    at_round,
    draw_curves,
    format_quantiles,
    growth_exponents,
    rate_between,
)
from banditrank.experiments._formatting import join_words
from banditrank.experiments._paper_policies import CATALOG_NAMES, POLICIES
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.model._catalog import kdd2012
from banditrank.solvers._optimum import best_values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MIN_OPTIMAL_RATE = 0.9  # in the last half: a replication at or above has found the optimal rankings
MAX_LOSS = (
    0.01  # share of the best value lost in the last half: a replication at or below has nearly found them
)
MIN_FOUND_RATE = 0.95  # of the replications: a policy at or above finds the optimal rankings


def analyse(frames: Frames) -> StudyResult:
    """Return how many replications find the optimal rankings, and the order of regret."""
    horizon = int(frames["ucb-rank-equal-utilitarian"]["round"].max())
    found = {
        name: float((rate_between(frames[name], horizon // 2, horizon) >= MIN_OPTIMAL_RATE).mean())
        for name in POLICIES
    }
    near = {name: float((_loss(frames[name], name, horizon) <= MAX_LOSS).mean()) for name in POLICIES}
    checks = [
        Check(
            f"{name} finds the optimal rankings: at least {MIN_FOUND_RATE:.0%} of the replications show "
            f"them in at least {MIN_OPTIMAL_RATE:.0%} of the second half of rounds.",
            found[name] >= MIN_FOUND_RATE,
            f"{found[name]:.0%} do; {near[name]:.0%} lose at most {MAX_LOSS:.0%} of the best value there",
        )
        for name in POLICIES
    ]
    checks += [_sublinear_check(frames, name, horizon) for name in POLICIES]
    shares = join_words(f"{found[name]:.0%} of {name}'s" for name in POLICIES)
    nearly = join_words(f"{near[name]:.0%}" for name in POLICIES)
    findings = (
        f"After {horizon:,} rounds {shares} replications have found the optimal rankings. Some rankings are "
        f"nearly as good: {nearly} of the replications lose at most {MAX_LOSS:.0%} of the best value."
    )
    table = _table(frames, found, near, horizon)
    return StudyResult(findings, checks, [_figure(frames)], [table], {"found": found, "nearly_found": near})


def _loss(frame: "pd.DataFrame", name: str, horizon: int) -> Floats:
    """Return the share of the best value lost in the second half of rounds, shape (R,)."""
    policy, problem = POLICIES[name], kdd2012()
    equal = policy.treatment == "equal"
    values = best_values(problem, equal=equal, utility=policy.utility)
    best = float(values[0] if equal else problem.arrival_rates @ values)
    half = horizon // 2
    return (at_round(frame, horizon) - at_round(frame, half)) / (horizon - half) / best


def _sublinear_check(frames: Frames, name: str, horizon: int) -> Check:
    exponent = float(np.median(growth_exponents(frames[name], horizon // 2, horizon)))
    return Check(
        f"{name}'s regret is sub-linear: over the second half of rounds the "
        f"median growth exponent is below {SUBLINEAR}.",
        exponent < SUBLINEAR,
        f"{exponent:.2f}",
    )


def _table(frames: Frames, found: dict[str, float], near: dict[str, float], horizon: int) -> Table:
    rows = []
    for name in POLICIES:
        final = at_round(frames[name], horizon)
        extremes = [f"{final.mean():,.0f}", f"{final.max():,.0f}"]
        rows.append([name, *format_quantiles(final), *extremes, f"{found[name]:.0%}", f"{near[name]:.0%}"])
    return Table(
        f"Regret after {horizon:,} rounds, and the share of replications that found the optimal rankings",
        ["policy", *QUANTILE_HEADINGS, "mean", "largest", "found", f"within {MAX_LOSS:.0%}"],
        rows,
    )


def _figure(frames: Frames) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        for (left, right), treatment in zip(figure.subplots(2, 2), ("personalized", "equal"), strict=True):
            named = {name: frames[name] for name in POLICIES if treatment in name}
            draw_curves(left, named, per_round=True, policies=CATALOG_NAMES)
            left.set_yscale("log")
            left.set_ylabel("average regret")
            left.set_title(f"{treatment} treatment")
            draw_curves(right, named, "optimal_rate", policies=CATALOG_NAMES)
            right.set_ylabel("optimal-action rate")
            right.set_ylim(0, 1)
            left.legend()

    caption = (
        "Average regret (left) and the share of rounds with an optimal ranking (right), after a hundredth of "
        "the rounds: medians, in bands from the 10% to the 90% quantile of the replications. Personalized "
        "and equal regret are relative to different optima."
    )
    return ReportFigure("average-regret", caption, draw, height=6.4)
