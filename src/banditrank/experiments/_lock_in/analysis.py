"""Analysis of linear runs and of the initial phase."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._extras import requires
from banditrank._figures import format_ticks, policy_styles
from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._curves import QUANTILE_HEADINGS, format_quantiles, group_by
from banditrank.experiments._formatting import format_number, join_words
from banditrank.experiments._lock_in.sweep import PROBLEMS, scaled
from banditrank.experiments._paper_policies import CATALOG_NAMES, COEFFICIENTS
from banditrank.experiments._regret_order.bounds import initial_phase
from banditrank.experiments._study import Check, Frames, StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

MIN_LINEAR_EXPONENT = 0.9  # over the last doubling of rounds: a run at or above counts as linear
MAX_LINEAR_RATE = 0.01  # of the runs: the paper's claims are about expectations
MAX_LOSS = 0.01  # share of the best value: estimates that lose more lead to a wrong ranking
REMEDIES = {
    "known_positions": "with known positions",
    "without_rare": "without rarely shown items",
    "likelihood": "by likelihood",
}
INDEPENDENT_ROUNDS = 74_000  # approximately, by an independent implementation (docs/explanation/fidelity.md)
TOLERANCE = 0.5  # share of it: neither the seed of its problem nor its error is known


def analyse(frames: Frames) -> StudyResult:
    """Return the rate of linear runs and its causes, and the duration of the initial phase."""
    runs = {name: _runs(frames, name) for name in COEFFICIENTS}
    own = {
        name: _share(group_by(runs[name], "coefficient")[COEFFICIENTS[name]]["linear"])
        for name in COEFFICIENTS
    }
    phases = {name: _phases(frames, name) for name in PROBLEMS}
    means = {rate: float(group["initial_rounds"].mean()) for rate, group in phases["synthetic"].items()}
    min_rate = min(means)
    checks = [
        *(
            Check(
                f"With the paper's own coefficient at most {MAX_LINEAR_RATE:.0%} of the runs of {name} are "
                f"linear, with a growth exponent of at least {MIN_LINEAR_EXPONENT} over the second half.",
                own[name] <= MAX_LINEAR_RATE,
                f"{own[name]:.1%} are",
            )
            for name in COEFFICIENTS
        ),
        *(_phase_check(phases[name], name) for name in PROBLEMS),
        _independent_check(phases["synthetic"][1.0]),
    ]
    shares = join_words(f"{share:.1%} of {name}'s" for name, share in own.items())
    wrong, remedied = _causes(runs)
    causes = (
        f"; of all linear runs, with any coefficient, {wrong:.0%} estimate a wrong ranking to be the best, "
        f"and of these {remedied['known_positions']:.0%} would not with known position preferences, "
        f"{remedied['without_rare']:.0%} if Algorithm 1 left out rarely shown items and "
        f"{remedied['likelihood']:.0%} with maximum likelihood"
    )
    findings = (
        f"With the paper's own coefficients {shares} runs are linear at the end{causes if wrong else ''}. "
        f"The initial phase takes {means[1.0]:,.0f} rounds on the synthetic problem, and "
        f"{means[min_rate] / means[1.0]:.1f} times as many when click rates are {min_rate:g} times as high."
    )
    tables = [_coefficient_table(runs), _phase_table(phases)]
    figures = [_lock_in_figure(runs), _phase_figure(phases)]
    return StudyResult(findings, checks, figures, tables, {"linear_run_rate": own, "remedied_rate": remedied})


def _runs(frames: Frames, name: str) -> "pd.DataFrame":
    """Return the runs of a policy with all coefficients, with a column for linear runs."""
    with requires("reports", "the study"):
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

    data = pd.concat([frame for job, frame in frames.items() if job.startswith(f"{name}-")])
    growth = np.log2(data["regret"].clip(lower=1e-9) / data["regret_halfway"].clip(lower=1e-9))
    return data.assign(linear=growth >= MIN_LINEAR_EXPONENT)


def _phases(frames: Frames, problem: str) -> "dict[float, pd.DataFrame]":
    """Return the initial phases of a problem by click rate."""
    with requires("reports", "the study"):
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

    found = [frame for job, frame in frames.items() if job.startswith(f"initial-phase-{problem}-")]
    return group_by(pd.concat(found), "rate")


def _share(condition: "pd.Series[bool]") -> float:
    return float(condition.mean()) if len(condition) else 0.0


def _causes(runs: "dict[str, pd.DataFrame]") -> tuple[float, dict[str, float]]:
    """Return the share of linear runs with wrong estimates, and of these the share that each remedy helps."""
    with requires("reports", "the study"):
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

    everything = pd.concat(runs.values())
    linear = everything[everything["linear"]]
    wrong = linear[linear["loss_estimated"] > MAX_LOSS]
    remedied = {name: _share(wrong[f"loss_{name}"] <= MAX_LOSS) for name in REMEDIES}
    return _share(linear["loss_estimated"] > MAX_LOSS), remedied


def _bounds(name: str, rates: Iterable[float]) -> Floats:
    """Return the proofs' bound on the initial phase at each click rate, shape (rates,)."""
    problem = PROBLEMS[name].make_problem()
    return np.array([initial_phase(scaled(problem, rate)) for rate in rates])


def _phase_check(phases: "dict[float, pd.DataFrame]", name: str) -> Check:
    means = np.array([group["initial_rounds"].mean() for group in phases.values()])
    ratios = _bounds(name, phases) / means
    ended = all(group["ended"].all() for group in phases.values())  # otherwise the means are too small
    holds = bool(ratios.min() >= 1.0)
    return Check(
        f"{PROBLEMS[name].label}: at every click rate the mean duration of the initial phase is within the "
        "proofs' bound.",
        None if holds and not ended else holds,
        f"the bound is {format_number(ratios.min())} to {format_number(ratios.max())} times the mean",
    )


def _independent_check(phases: "pd.DataFrame") -> Check:
    rounds = phases["initial_rounds"].to_numpy(dtype=np.float64)
    mean, error = float(rounds.mean()), float(rounds.std(ddof=1) / np.sqrt(len(rounds)))
    difference, allowed = abs(mean - INDEPENDENT_ROUNDS), TOLERANCE * INDEPENDENT_ROUNDS
    return Check(
        f"With clicks, the initial phase of the synthetic problem lasts about {INDEPENDENT_ROUNDS:,} rounds, "
        "as in an independent implementation (docs/explanation/fidelity.md) on a problem of the same size "
        f"and distributions: the mean, within three standard errors, differs by at most {TOLERANCE:.0%}.",
        None if abs(difference - allowed) < 3 * error else difference <= allowed,
        f"mean {mean:,.0f}, standard error {error:,.0f}",
        claimed_by="implementation",
    )


def _coefficient_table(runs: "dict[str, pd.DataFrame]") -> Table:
    rows = []
    for name in COEFFICIENTS:
        for coefficient, group in group_by(runs[name], "coefficient").items():
            linear = group[group["linear"]]
            wrong = linear[linear["loss_estimated"] > MAX_LOSS]
            causes = [f"{len(wrong) / len(linear):.0%}" if len(linear) else "–"]
            causes += [
                f"{_share(wrong[f'loss_{remedy}'] <= MAX_LOSS):.0%}" if len(wrong) else "–"
                for remedy in REMEDIES
            ]
            regret = group["regret"].to_numpy(dtype=np.float64)
            statistics = (*np.quantile(regret, (0.5, 0.9, 0.99)), regret.max(), regret.mean())
            rows.append(
                [
                    name,
                    f"{coefficient:g}",
                    f"{_share(group['linear']):.1%}",
                    *(f"{value:,.0f}" for value in statistics),
                    *causes,
                ]
            )
    headings = ["policy", "c", "linear", "median", "90%", "99%", "maximum", "mean", "wrong estimate"]
    caption = (
        "Rate of linear runs, and regret, by coefficient; share of the linear runs that estimate a wrong "
        "ranking to be the best, and of these the share that each remedy helps"
    )
    return Table(caption, [*headings, *REMEDIES.values()], rows)


def _phase_table(phases: "dict[str, dict[float, pd.DataFrame]]") -> Table:
    rows = []
    for name, (label, *_) in PROBLEMS.items():
        bounds = _bounds(name, phases[name])
        for (rate, group), bound in zip(phases[name].items(), bounds, strict=True):
            rounds = format_quantiles(group["initial_rounds"].to_numpy(dtype=np.float64))
            ended = f"{_share(group['ended']):.0%}"
            mean = f"{group['initial_rounds'].mean():,.0f}"
            rows.append([label, f"× {rate:g}", *rounds, mean, f"{bound:,.0f}", ended])
    headings = ["problem", "click rates", *QUANTILE_HEADINGS, "mean", "the proofs' bound", "ended"]
    return Table("Rounds of the initial phase", headings, rows)


def _quantiles(data: "dict[float, pd.DataFrame]", column: str) -> Floats:
    """Return the 10%, 50% and 90% quantiles of each group, shape (3, groups)."""
    values = [group[column].to_numpy(dtype=np.float64) for group in data.values()]
    return np.array([np.quantile(each, (0.1, 0.5, 0.9)) for each in values]).T


def _lock_in_figure(runs: "dict[str, pd.DataFrame]") -> ReportFigure:
    def draw(figure: "Figure") -> None:
        for (left, right), treatment in zip(figure.subplots(2, 2), ("personalized", "equal"), strict=True):
            names = [name for name in COEFFICIENTS if treatment in name]
            styles = policy_styles([CATALOG_NAMES[name] for name in names])
            for name, (colour, _) in zip(names, styles, strict=True):
                by_coefficient = group_by(runs[name], "coefficient")
                shares = [100 * _share(group["linear"]) for group in by_coefficient.values()]
                low, median, high = _quantiles(by_coefficient, "regret")
                left.plot(list(by_coefficient), shares, "o-", label=name, color=colour)
                right.plot(list(by_coefficient), median, "o-", label=name, color=colour)
                right.fill_between(list(by_coefficient), low, high, alpha=0.15, linewidth=0, color=colour)
            for axes in (left, right):
                axes.set_xscale("log", base=2)
                axes.set_xlabel("coefficient c")
            right.set_yscale("log")
            for axes in (left, right):
                format_ticks(axes)
            left.set_title(f"{treatment} treatment")
            left.set_ylabel("linear runs, %")
            right.set_ylabel("regret at the end")
            left.legend()

    caption = (
        "Rate of linear runs (left), and the median of regret in a band from the 10% to the 90% quantile "
        "(right), by coefficient. Personalized and equal regret are relative to different optima."
    )
    return ReportFigure("lock-in", caption, draw, height=6.4)


def _phase_figure(phases: "dict[str, dict[float, pd.DataFrame]]") -> ReportFigure:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for index, (name, (label, *_)) in enumerate(PROBLEMS.items()):
            rates, colour = list(phases[name]), f"C{index}"
            low, median, high = _quantiles(phases[name], "initial_rounds")
            axes.plot(rates, median, "o-", color=colour, label=label)
            axes.fill_between(rates, low, high, color=colour, alpha=0.2)
            axes.plot(
                rates, _bounds(name, rates), "--", color=colour, linewidth=1, label=f"{label}: the bound"
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(list(phases["table1"]))
        axes.minorticks_off()
        axes.set_xlabel("click rates, as a multiple of the problem's")
        axes.set_ylabel("rounds of the initial phase")
        axes.legend(frameon=False, fontsize="small")
        format_ticks(axes)

    caption = "The initial phase ends when every cell has a click, so it is longer with lower click rates."
    return ReportFigure("initial-phase", caption, draw, width=6.5)
