"""How the data are read."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.curves import SPREAD, groups, spread
from banditrank.experiments.lock_in.sweep import WORLDS, scaled
from banditrank.experiments.paper_policies import COEFFICIENTS, LABELS
from banditrank.experiments.regret_order.bounds import initial_phase
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.experiments.words import listed, rounded
from banditrank.figures import style_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

LINEAR = 0.9  # the exponent, over the last doubling of rounds, from which on a run counts as linear
RARE = 0.01  # of the runs: the paper's claims are of expectations, which one run in a hundred hardly moves
WRONG = 0.01  # of the best value lost: then a belief is wrong
CURES = {
    "known_positions": "if the positions were known",
    "without_rare": "without rarely shown items",
    "likelihood": "by likelihood",
}
MEASURED_ROUNDS = 74_000  # about: an independent implementation's figure, which docs/fidelity.md states
ABOUT = 0.5  # of them: neither the seed of its world nor an error is known


def read(frames: Frames) -> Reading:
    """Return how often runs turn linear and why, and how long the initial phase lasts."""
    runs = {name: _runs(frames, name) for name in LABELS}
    own = {name: _share(groups(runs[name], "coefficient")[COEFFICIENTS[name]]["linear"]) for name in LABELS}
    phases = {world: _phases(frames, world) for world in WORLDS}
    means = {rate: float(group["initial_rounds"].mean()) for rate, group in phases["synthetic"].items()}
    least = min(means)
    checks = [
        *(
            Check(
                f"With the paper's own coefficient at most {RARE:.0%} of the runs of {label} are linear: "
                f"over the last half of rounds their regret grows with an exponent of {LINEAR} or more.",
                own[name] <= RARE,
                f"{own[name]:.1%} are",
            )
            for name, label in LABELS.items()
        ),
        *(_phase_check(phases[world], world) for world in WORLDS),
        _independent_check(phases["synthetic"][1.0]),
    ]
    shares = listed(f"{share:.1%} of {LABELS[name]}'s" for name, share in own.items())
    wrong, cured = _reasons(runs)
    reasons = (
        f"; of all linear runs, with any coefficient, {wrong:.0%} believe in a wrong ranking, and of these "
        f"{cured['known_positions']:.0%} would not if they knew where users look, "
        f"{cured['without_rare']:.0%} if Algorithm 1 left out rarely shown items and "
        f"{cured['likelihood']:.0%} if they estimated by likelihood"
    )
    findings = (
        f"With the paper's own coefficients {shares} runs are linear at the end{reasons if wrong else ''}. "
        "The initial phase takes "
        f"{means[1.0]:,.0f} rounds on the synthetic world, and {means[least] / means[1.0]:.1f} times as many "
        f"when click rates are {least:g} times as high."
    )
    tables = [_coefficients(runs), _phase_table(phases)]
    pictures = [_picture(runs), _phase_picture(phases)]
    return Reading(findings, checks, pictures, tables, {"linear": own, "cured": cured})


def _runs(frames: Frames, name: str) -> "pd.DataFrame":
    """Return the runs of a policy with all coefficients, and which are linear at the end."""
    import pandas as pd  # noqa: PLC0415 - heavy

    data = pd.concat([frame for part, frame in frames.items() if part.startswith(f"{name}-")])
    growth = np.log2(data["regret"].clip(lower=1e-9) / data["regret_halfway"].clip(lower=1e-9))
    return data.assign(linear=growth >= LINEAR)


def _phases(frames: Frames, world: str) -> "dict[float, pd.DataFrame]":
    """Return the initial phases of a world by click rate."""
    import pandas as pd  # noqa: PLC0415 - heavy

    parts = [frame for part, frame in frames.items() if part.startswith(f"initial-phase-{world}-")]
    return groups(pd.concat(parts), "rate")


def _share(condition: "pd.Series[bool]") -> float:
    return float(condition.mean()) if len(condition) else 0.0


def _reasons(runs: "dict[str, pd.DataFrame]") -> tuple[float, dict[str, float]]:
    """Return which share of linear runs believe in a wrong ranking, and of these how many each cure helps."""
    import pandas as pd  # noqa: PLC0415 - heavy

    everything = pd.concat(runs.values())
    linear = everything[everything["linear"]]
    wrong = linear[linear["loss_believed"] > WRONG]
    cured = {name: _share(wrong[f"loss_{name}"] <= WRONG) for name in CURES}
    return _share(linear["loss_believed"] > WRONG), cured


def _bounds(world: str, rates: Iterable[float]) -> Floats:
    """Return the proofs' bound on the initial phase at each click rate."""
    problem = WORLDS[world].make()
    return np.array([initial_phase(scaled(problem, rate)) for rate in rates])


def _phase_check(phases: "dict[float, pd.DataFrame]", world: str) -> Check:
    means = np.array([group["initial_rounds"].mean() for group in phases.values()])
    rooms = _bounds(world, phases) / means
    ended = all(group["ended"].all() for group in phases.values())  # if not, means are too small
    holds = bool(rooms.min() >= 1.0)
    return Check(
        f"{WORLDS[world].label}: at every click rate the initial phase is on average within the proofs' "
        "bound.",
        None if holds and not ended else holds,
        f"the bound is {rounded(rooms.min())} to {rounded(rooms.max())} times the mean",
    )


def _independent_check(phases: "pd.DataFrame") -> Check:
    rounds = phases["initial_rounds"].to_numpy(dtype=np.float64)
    mean, error = float(rounds.mean()), float(rounds.std(ddof=1) / np.sqrt(len(rounds)))
    off, allowed = abs(mean - MEASURED_ROUNDS), ABOUT * MEASURED_ROUNDS
    return Check(
        f"With clicks, the initial phase of the synthetic world lasts about {MEASURED_ROUNDS:,} rounds, an "
        "independent implementation's figure (docs/fidelity.md) of a world of its size and distributions: "
        f"the mean, give or take three standard errors, is off by {ABOUT:.0%} at most.",
        None if abs(off - allowed) < 3 * error else off <= allowed,
        f"mean {mean:,.0f}, standard error {error:,.0f}",
        of="implementation",
    )


def _coefficients(runs: "dict[str, pd.DataFrame]") -> Table:
    rows = []
    for name, label in LABELS.items():
        for coefficient, group in groups(runs[name], "coefficient").items():
            linear = group[group["linear"]]
            wrong = linear[linear["loss_believed"] > WRONG]
            reasons = [f"{len(wrong) / len(linear):.0%}" if len(linear) else "–"]
            reasons += [
                f"{_share(wrong[f'loss_{cure}'] <= WRONG):.0%}" if len(wrong) else "–" for cure in CURES
            ]
            regret = group["regret"].to_numpy(dtype=np.float64)
            figures = (*np.quantile(regret, (0.5, 0.9, 0.99)), regret.max(), regret.mean())
            rows.append(
                [
                    label,
                    f"{coefficient:g}",
                    f"{_share(group['linear']):.1%}",
                    *(f"{value:,.0f}" for value in figures),
                    *reasons,
                ]
            )
    headings = ["policy", "c", "linear", "median", "90%", "99%", "largest", "mean", "wrong belief"]
    caption = (
        "Runs that are linear at the end, and regret, by coefficient; how many of the linear runs believe in "
        "a wrong ranking, and how many of these would not"
    )
    return Table(caption, [*headings, *CURES.values()], rows)


def _phase_table(phases: "dict[str, dict[float, pd.DataFrame]]") -> Table:
    rows = []
    for world, (label, *_) in WORLDS.items():
        bounds = _bounds(world, phases[world])
        for (rate, group), bound in zip(phases[world].items(), bounds, strict=True):
            rounds = spread(group["initial_rounds"].to_numpy(dtype=np.float64))
            ended = f"{_share(group['ended']):.0%}"
            mean = f"{group['initial_rounds'].mean():,.0f}"
            rows.append([label, f"× {rate:g}", *rounds, mean, f"{bound:,.0f}", ended])
    headings = ["world", "click rates", *SPREAD, "mean", "mean at most, by the proofs", "ended"]
    return Table("Rounds of the initial phase", headings, rows)


def _quantiles(data: "dict[float, pd.DataFrame]", column: str) -> Floats:
    """Return the 10%, 50% and 90% quantiles, a row each and a column for each group."""
    values = [group[column].to_numpy(dtype=np.float64) for group in data.values()]
    return np.array([np.quantile(each, (0.1, 0.5, 0.9)) for each in values]).T


def _picture(runs: "dict[str, pd.DataFrame]") -> Picture:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        for number, (name, label) in enumerate(LABELS.items()):
            by_coefficient = groups(runs[name], "coefficient")
            shares = [100 * _share(group["linear"]) for group in by_coefficient.values()]
            low, median, high = _quantiles(by_coefficient, "regret")
            style = {"color": f"C{number}"}
            left.plot(list(by_coefficient), shares, "o-", label=label, **style)
            right.plot(list(by_coefficient), median, "o-", label=label, **style)
            right.fill_between(list(by_coefficient), low, high, alpha=0.15, linewidth=0, **style)
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xlabel("coefficient c")
            style_axes(axes)
        right.set_yscale("log")
        left.set_ylabel("linear runs, %")
        right.set_ylabel("regret at the end")
        left.legend(frameon=False, fontsize="small")

    caption = (
        "How many runs are linear at the end (left), and the median of regret in a band from the 10% to the "
        "90% quantile (right), by coefficient."
    )
    return Picture("lock-in", caption, draw)


def _phase_picture(phases: "dict[str, dict[float, pd.DataFrame]]") -> Picture:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for number, (world, (label, *_)) in enumerate(WORLDS.items()):
            rates, colour = list(phases[world]), f"C{number}"
            low, median, high = _quantiles(phases[world], "initial_rounds")
            axes.plot(rates, median, "o-", color=colour, label=label)
            axes.fill_between(rates, low, high, color=colour, alpha=0.2)
            axes.plot(
                rates, _bounds(world, rates), "--", color=colour, linewidth=1, label=f"{label}: the bound"
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(list(phases["table1"]))
        axes.minorticks_off()
        axes.set_xlabel("click rates, as a multiple of the world's")
        axes.set_ylabel("rounds of the initial phase")
        axes.legend(frameon=False, fontsize="small")
        style_axes(axes)

    caption = "The initial phase ends when every cell has a click: the rarer clicks are, the longer it lasts."
    return Picture("initial-phase", caption, draw, width=6.5)
