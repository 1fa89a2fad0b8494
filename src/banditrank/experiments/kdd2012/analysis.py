"""How the data are read."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.curves import SPREAD, SUBLINEAR, at_round, between, draw_curves, growth, spread
from banditrank.experiments.paper_policies import LABELS, POLICIES
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.experiments.words import listed
from banditrank.model.catalog import kdd2012
from banditrank.solvers.optimum import best_values

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

OPTIMAL = 0.9  # of the rounds in the last half: then a replication has found the optimal rankings
NEARLY = 0.01  # of the best value lost in the last half: then it has found them but for near ties
MOST = 0.95  # of the replications: then a policy finds them


def read(frames: Frames) -> Reading:
    """Return what the curves say."""
    horizon = int(frames["ucb-equal"]["round"].max())
    found = {name: float((between(frames[name], horizon // 2, horizon) >= OPTIMAL).mean()) for name in LABELS}
    near = {name: float((_loss(frames[name], name, horizon) <= NEARLY).mean()) for name in LABELS}
    checks = [
        Check(
            f"{label} finds the optimal rankings: {MOST:.0%} of the replications or more show them in "
            f"{OPTIMAL:.0%} of the last half of rounds.",
            found[name] >= MOST,
            f"{found[name]:.0%} do; {near[name]:.0%} lose at most {NEARLY:.0%} of the best value there",
        )
        for name, label in LABELS.items()
    ]
    checks += [_slows_down(frames, name, label, horizon) for name, label in LABELS.items()]
    shares = listed(f"{found[name]:.0%} of {label}'s" for name, label in LABELS.items())
    nearly = listed(f"{near[name]:.0%}" for name in LABELS)
    findings = (
        f"By {horizon:,} rounds {shares} replications have found the optimal rankings. Some rankings are "
        f"nearly as good: within {NEARLY:.0%} of the best are what {nearly} of the replications show."
    )
    table = _table(frames, found, near, horizon)
    return Reading(findings, checks, [_picture(frames)], [table], {"found": found, "nearly_found": near})


def _loss(frame: "pd.DataFrame", name: str, horizon: int) -> Floats:
    """Return the share of the best value that each replication loses in the last half of rounds."""
    policy, problem = POLICIES[name], kdd2012()
    equal = policy.treatment == "equal"
    values = best_values(problem, equal=equal, utility=policy.utility)
    best = float(values[0] if equal else problem.arrival_rates @ values)
    half = horizon // 2
    return (at_round(frame, horizon) - at_round(frame, half)) / (horizon - half) / best


def _slows_down(frames: Frames, name: str, label: str, horizon: int) -> Check:
    exponent = float(np.median(growth(frames[name], horizon // 2, horizon)))
    return Check(
        f"{label}'s regret is sub-linear: over the last half of rounds it grows with an exponent whose "
        f"median is below {SUBLINEAR}.",
        exponent < SUBLINEAR,
        f"{exponent:.2f}",
    )


def _table(frames: Frames, found: dict[str, float], near: dict[str, float], horizon: int) -> Table:
    rows = []
    for name, label in LABELS.items():
        final = at_round(frames[name], horizon)
        extremes = [f"{final.mean():,.0f}", f"{final.max():,.0f}"]
        rows.append([label, *spread(final), *extremes, f"{found[name]:.0%}", f"{near[name]:.0%}"])
    return Table(
        f"Regret after {horizon:,} rounds, and how many replications found the optimal rankings",
        ["policy", *SPREAD, "mean", "largest", "found", f"within {NEARLY:.0%}"],
        rows,
    )


def _picture(frames: Frames) -> Picture:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        named = {label: frames[name] for name, label in LABELS.items()}
        draw_curves(left, named, per_round=True)
        left.set_yscale("log")
        left.set_ylim(1e-4, 1)
        left.set_ylabel("average regret")
        draw_curves(right, named, "optimal_rate")
        right.set_ylabel("optimal-action rate")
        right.set_ylim(0, 1)
        left.legend(frameon=False, fontsize="small")

    caption = (
        "Average regret (left) and the share of rounds with an optimal ranking (right): medians, in bands "
        "from the 10% to the 90% quantile of the replications."
    )
    return Picture("average-regret", caption, draw)
