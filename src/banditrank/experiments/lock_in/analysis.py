"""How the data are read."""

from typing import TYPE_CHECKING

import numpy as np

from banditrank.experiments.lock_in.sweep import POLICIES, scaled, synthetic
from banditrank.experiments.regret_order.bounds import initial_phase
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.figures import tidy
from banditrank.model.catalog import kdd2012

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LINEAR = 0.9  # the exponent, over the last doubling of rounds, from which on a run counts as linear
WRONG = 0.01  # of the best value lost: then a belief is wrong
CURES = {
    "known_positions": "if the positions were known",
    "without_rare": "without rarely shown items",
    "likelihood": "by likelihood",
}
LABELS = {
    "greedy-personalized": "PT-GreedyRank",
    "ucb-personalized": "PT-UCBRank",
    "greedy-equal": "ET-GreedyRank",
    "ucb-equal": "ET-UCBRank",
}
WORLDS = {"table1": ("Table 1", kdd2012), "synthetic": ("N = 3, M = 20, K = 4", synthetic)}
PAPERS_OWN = {"personalized": 0.25, "equal": 0.5}
MEASURED_ROUNDS = 74_000  # of the initial phase on the synthetic world, by an independent implementation


def read(frames: Frames, _quick: bool) -> Reading:  # noqa: FBT001 - as `Study` has it
    """Return how often runs turn linear and why, and how long the initial phase lasts."""
    import pandas as pd  # noqa: PLC0415 - heavy

    runs = pd.concat({name: _runs(frames, name) for name in POLICIES}, names=["policy"]).reset_index("policy")
    phases = {world: _phases(frames, world) for world in WORLDS}
    shares = runs.groupby(["policy", "coefficient"])["linear"].mean()
    own = {name: float(shares[name, PAPERS_OWN[name.split("-")[1]]]) for name in POLICIES}
    linear = runs[runs["linear"]]
    wrong = linear[linear["loss_believed"] > WRONG]
    cured = {name: _share(wrong[f"loss_{name}"] <= WRONG) for name in CURES}
    phase = phases["synthetic"].loc[phases["synthetic"]["rate"] == 1.0, "initial_rounds"]
    chance = 3 * float(phase.sem())
    checks = [
        *(
            Check(
                f"No run of {label} is linear with the paper's own coefficient.",
                own[name] == 0.0,
                f"{own[name]:.1%} are",
            )
            for name, label in LABELS.items()
        ),
        *(_phase_check(phases[world], world) for world in WORLDS),
        Check(
            f"With clicks, the initial phase of the synthetic world lasts about {MEASURED_ROUNDS:,} rounds, as an "
            "independent implementation found (within a tenth, or three standard errors).",
            abs(phase.mean() - MEASURED_ROUNDS) <= max(0.1 * MEASURED_ROUNDS, chance),
            f"mean {phase.mean():,.0f}, standard error {phase.sem():,.0f}",
        ),
    ]
    findings = (
        f"With the paper's own coefficients {_list(own)} runs are linear at the end; of all linear runs "
        f"{_share(linear['loss_believed'] > WRONG):.0%} believe in a wrong ranking, and of these {cured['known_positions']:.0%} "
        f"would not if they knew where users look, {cured['without_rare']:.0%} if Algorithm 1 left out rarely shown items and "
        f"{cured['likelihood']:.0%} if they estimated by likelihood. The initial phase takes {phase.mean():,.0f} rounds on the "
        "synthetic world, and in inverse proportion more at lower click rates."
    )
    tables = [_coefficients(runs), _phase_table(phases)]
    pictures = [_picture(runs), _phase_picture(phases)]
    return Reading(findings, checks, pictures, tables, {"linear": own, "cured": cured})


def _share(condition: "pd.Series[bool]") -> float:
    return float(condition.mean()) if len(condition) else 0.0


def _list(own: dict[str, float]) -> str:
    *first, last = (f"{share:.1%} of {LABELS[name]}'s" for name, share in own.items())
    return f"{', '.join(first)} and {last}"


def _runs(frames: Frames, name: str) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - heavy

    data = pd.concat([frame for part, frame in frames.items() if part.startswith(f"{name}-")])
    growth = np.log2(data["regret"].clip(lower=1e-9) / data["regret_halfway"].clip(lower=1e-9))
    return data.assign(linear=growth >= LINEAR)


def _phases(frames: Frames, world: str) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - heavy

    return pd.concat([frame for part, frame in frames.items() if part.startswith(f"initial-phase-{world}-")])


def _phase_check(phases: "pd.DataFrame", world: str) -> Check:
    label, make = WORLDS[world]
    means = phases.groupby("rate")["initial_rounds"].mean()
    rooms = {rate: initial_phase(scaled(make(), rate)) / mean for rate, mean in means.items()}
    return Check(
        f"{label}: the initial phase is on average within the proofs' bound at every click rate.",
        min(rooms.values()) >= 1.0,
        f"the bound is {min(rooms.values()):.1f} to {max(rooms.values()):.1f} times the mean",
    )


def _coefficients(runs: "pd.DataFrame") -> Table:
    rows = []
    for (name, coefficient), group in runs.groupby(["policy", "coefficient"], sort=False):
        linear = group[group["linear"]]
        wrong = linear[linear["loss_believed"] > WRONG]
        reasons = [f"{len(wrong) / len(linear):.0%}" if len(linear) else "–"]
        reasons += [f"{_share(wrong[f'loss_{name}'] <= WRONG):.0%}" if len(wrong) else "–" for name in CURES]
        quantiles = group["regret"].quantile([0.5, 0.9, 0.99])
        figures = (*quantiles, group["regret"].max(), group["regret"].mean())
        rows.append(
            [
                LABELS[str(name)],
                f"{coefficient:g}",
                f"{group['linear'].mean():.1%}",
                *(f"{value:,.0f}" for value in figures),
                *reasons,
            ]
        )
    columns = [
        "policy",
        "c",
        "linear",
        "median",
        "90%",
        "99%",
        "max",
        "mean",
        "wrong belief",
        *CURES.values(),
    ]
    caption = (
        "Runs that are linear at the end and regret, by coefficient; how many of the linear runs believe in a wrong "
        "ranking, and how many of these would not"
    )
    return Table(caption, columns, rows)


def _phase_table(phases: "dict[str, pd.DataFrame]") -> Table:
    rows = []
    for world, (label, make) in WORLDS.items():
        for rate, group in phases[world].groupby("rate", sort=False):
            low, median, high = group["initial_rounds"].quantile([0.1, 0.5, 0.9])
            bound = initial_phase(scaled(make(), float(rate)))
            figures = (median, low, high, bound)
            rows.append(
                [
                    label,
                    f"× {rate:g}",
                    *(f"{value:,.0f}" for value in figures),
                    f"{group['ended'].mean():.0%}",
                ]
            )
    return Table(
        "Rounds of the initial phase",
        ["world", "click rates", "median", "10%", "90%", "bound", "ended"],
        rows,
    )


def _picture(runs: "pd.DataFrame") -> Picture:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        for number, (name, label) in enumerate(LABELS.items()):
            groups = runs[runs["policy"] == name].groupby("coefficient")
            shares, regrets = groups["linear"].mean(), groups["regret"].quantile([0.1, 0.5, 0.9]).unstack()
            left.plot(shares.index, 100 * shares, "o-", color=f"C{number}", label=label)
            right.plot(regrets.index, regrets[0.5], "o-", color=f"C{number}", label=label)
            right.fill_between(
                regrets.index, regrets[0.1], regrets[0.9], color=f"C{number}", alpha=0.15, linewidth=0
            )
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xlabel("coefficient c")
            tidy(axes)
        right.set_yscale("log")
        left.set_ylabel("linear runs, %")
        right.set_ylabel("regret at the end")
        left.legend(frameon=False, fontsize="small")

    caption = (
        "How many runs are linear at the end, and regret with its 10% and 90% quantiles, by coefficient."
    )
    return Picture("lock-in", caption, draw)


def _phase_picture(phases: "dict[str, pd.DataFrame]") -> Picture:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for number, (world, (label, make)) in enumerate(WORLDS.items()):
            quantiles = phases[world].groupby("rate")["initial_rounds"].quantile([0.1, 0.5, 0.9]).unstack()
            bounds = [initial_phase(scaled(make(), float(rate))) for rate in quantiles.index]
            axes.plot(quantiles.index, quantiles[0.5], "o-", color=f"C{number}", label=label)
            axes.fill_between(quantiles.index, quantiles[0.1], quantiles[0.9], color=f"C{number}", alpha=0.2)
            axes.plot(
                quantiles.index, bounds, "--", color=f"C{number}", linewidth=1, label=f"{label}: the bound"
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("click rates, as a multiple of the world's")
        axes.set_ylabel("rounds of the initial phase")
        axes.legend(frameon=False, fontsize="small")
        tidy(axes)

    caption = "The initial phase ends when every cell has a click: the rarer clicks are, the longer it lasts."
    return Picture("initial-phase", caption, draw, width=6.5)
