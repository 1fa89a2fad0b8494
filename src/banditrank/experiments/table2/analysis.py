"""How the data are read, beside the paper's figures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.curves import SPREAD, at_round, spread
from banditrank.experiments.study import Check, Frames, Reading, Table
from banditrank.experiments.table2.sweep import ROUNDS
from banditrank.experiments.words import listed

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Cell = tuple[str, int]

MIDDLE = 1 - 0.05 / 8  # of the replications, for each of the eight regrets
FASTER = 500  # times, what is asked of the exact rows


class Printed(NamedTuple):
    """A cell of the paper's table, and what an independent implementation gave (mean, standard deviation)."""

    regret: int
    seconds: int
    mean: float
    sd: float


POLICIES = {"greedy": "GreedyRank", "ucb": "UCBRank"}
LABELS = {
    f"{policy}-{kind}": f"{label}, {word}"
    for policy, label in POLICIES.items()
    for kind, word in (("sampled", "approx."), ("exact", "opt."))
}
PRINTED = {
    ("greedy-sampled", 300_000): Printed(512, 33, 265, 158),
    ("greedy-exact", 300_000): Printed(387, 41, 314, 408),
    ("ucb-sampled", 300_000): Printed(314, 75, 240, 27),
    ("ucb-exact", 300_000): Printed(238, 82, 208, 32),
    ("greedy-sampled", 600_000): Printed(581, 68, 317, 158),
    ("greedy-exact", 600_000): Printed(461, 87, 382, 498),
    ("ucb-sampled", 600_000): Printed(326, 162, 265, 27),
    ("ucb-exact", 600_000): Printed(249, 188, 219, 32),
}


def read(frames: Frames) -> Reading:
    """Return the table, and where it differs from the paper's."""
    times = frames["running-time"].groupby(["row", "rounds"])["seconds"].median()
    regrets = {cell: at_round(frames[cell[0]], cell[1]) for cell in PRINTED}
    medians = {cell: float(np.median(values)) for cell, values in regrets.items()}
    speed_ups = {cell: printed.seconds / float(times[cell]) for cell, printed in PRINTED.items()}
    inside = {cell: abs(medians[cell] - printed.mean) <= printed.sd for cell, printed in PRINTED.items()}
    spans = {
        cell: np.quantile(values, ((1 - MIDDLE) / 2, (1 + MIDDLE) / 2)) for cell, values in regrets.items()
    }
    covered = {
        cell: bool(spans[cell][0] <= printed.regret <= spans[cell][1]) for cell, printed in PRINTED.items()
    }
    machines = listed(frames["running-time"]["machine"].unique())
    outside = [cell for cell, ok in covered.items() if not ok]
    exact = min(ratio for cell, ratio in speed_ups.items() if cell[0].endswith("exact"))
    checks = [
        Check(
            "The medians lie within one standard deviation of the mean of an independent implementation.",
            all(inside.values()),
            f"{sum(inside.values())} of {len(inside)} cells",
            of="implementation",
        ),
        Check(
            f"The paper's regrets are ones that a replication may well have: within the middle "
            f"{MIDDLE:.1%}, so that by chance any falls outside in 5 cases of 100 at most.",
            all(covered.values()),
            f"all but {_cells(outside)}" if outside else "all of them",
        ),
        *(_sampling_costs(medians, policy) for policy in POLICIES),
        *(_sampling_saves(times, policy) for policy in POLICIES),
        Check(
            f"The exact rows are at least {FASTER} times as fast as the paper's.",
            exact >= FASTER,
            f"{exact:,.0f} times or more, on one core of {machines}",
            of="implementation",
        ),
    ]
    inside_middle = len(PRINTED) - len(outside)
    findings = (
        f"Of the paper's {len(PRINTED)} regrets {inside_middle} lie within the middle {MIDDLE:.1%} of the "
        f"replications here. Exact equal treatment is a linear assignment here, and a run of it takes "
        f"{listed(_time_ratio(times, policy) for policy in POLICIES)} of the time of sampling; runs are "
        f"{min(speed_ups.values()):,.0f} to {max(speed_ups.values()):,.0f} times as fast as the paper's."
    )
    tables = [_table(regrets, times, speed_ups, rounds) for rounds in ROUNDS]
    figures = {
        f"{row}/{rounds}": {"median_regret": medians[row, rounds], "speed_up": speed_ups[row, rounds]}
        for row, rounds in PRINTED
    }
    return Reading(findings, checks, (), tables, figures)


def _cells(cells: Sequence[Cell]) -> str:
    return "; ".join(f"{LABELS[row]} after {rounds:,} rounds" for row, rounds in cells)


def _time_ratio(times: "pd.Series[float]", policy: str) -> str:
    sampled, exact = (float(times[f"{policy}-{kind}", ROUNDS[-1]]) for kind in ("sampled", "exact"))
    return f"{exact / sampled:.0%} ({POLICIES[policy]})"


def _sampling_costs(medians: dict[Cell, float], policy: str) -> Check:
    sampled, exact = (medians[f"{policy}-{kind}", ROUNDS[-1]] for kind in ("sampled", "exact"))
    return Check(
        f"Sampling costs {POLICIES[policy]} regret.",
        sampled > exact,
        f"median {sampled:,.0f} against {exact:,.0f} after {ROUNDS[-1]:,} rounds",
    )


def _sampling_saves(times: "pd.Series[float]", policy: str) -> Check:
    sampled, exact = (float(times[f"{policy}-{kind}", ROUNDS[-1]]) for kind in ("sampled", "exact"))
    return Check(
        f"Sampling saves {POLICIES[policy]} time.",
        sampled < exact,
        f"{sampled:.3f} s against {exact:.3f} s for {ROUNDS[-1]:,} rounds",
    )


def _table(
    regrets: dict[Cell, Floats],
    times: "pd.Series[float]",
    speed_ups: dict[Cell, float],
    rounds: int,
) -> Table:
    rows = []
    for row, label in LABELS.items():
        printed, values = PRINTED[row, rounds], regrets[row, rounds]
        rows.append(
            [
                label,
                f"{printed.regret}",
                *spread(values),
                f"{values.mean():,.0f} ± {values.std(ddof=1):,.0f}",
                f"{printed.mean:,.0f} ± {printed.sd:,.0f}",
                f"{printed.seconds} s",
                f"{float(times[row, rounds]):.3f} s",
                f"{speed_ups[row, rounds]:,.0f}",
            ]
        )
    columns = [
        "",
        "the paper's regret",
        *SPREAD,
        "mean ± sd",
        "independent mean ± sd",
        "the paper's time",
        "time",
        "times as fast",
    ]
    return Table(f"Regret and running time of {rounds:,} rounds", columns, rows)
