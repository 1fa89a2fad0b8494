"""Analysis of regret growth against the theorems."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._figures import format_ticks
from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._curves import curve
from banditrank.experiments._formatting import format_number, join_words
from banditrank.experiments._regret_order import bounds
from banditrank.experiments._regret_order.sweep import SIZES, random_problems
from banditrank.experiments._significance import BY_BOOTSTRAP, MeanRatio, ratio_of_means
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.model._catalog import kdd2012
from banditrank.model._problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]
SizeRatios = tuple[float, float, float]


def sqrt_t_ln_t(t: Floats) -> Floats:
    """Return √t ln t."""
    return np.asarray(np.sqrt(t) * np.log(t))


def sqrt_of_t_ln_t(t: Floats) -> Floats:
    """Return √(t ln t)."""
    return np.asarray(np.sqrt(t * np.log(t)))


ORDERS: dict[str, Callable[[Floats], Floats]] = {
    "ln t": np.log,
    "√(t ln t)": sqrt_of_t_ln_t,
    "√t ln t": sqrt_t_ln_t,
    "t": lambda t: t,
}


class Theorem(NamedTuple):
    """Policy, bound and order of a theorem."""

    label: str
    policy: str
    bound: Callable[[Problem, Rounds], Floats]
    order: str


THEOREMS = {
    "theorem-1": Theorem("Theorem 1", "greedy-rank-personalized", bounds.theorem_1, "√t ln t"),
    "theorem-2": Theorem("Theorem 2", "ucb-rank-personalized", bounds.theorem_2, "√(t ln t)"),
    "theorem-3": Theorem("Theorem 3", "greedy-rank-equal-utilitarian", bounds.theorem_3, "√t ln t"),
    "theorem-4": Theorem("Theorem 4", "ucb-rank-equal-utilitarian", bounds.theorem_4, "√(t ln t)"),
}


class RegretGrowth(NamedTuple):
    """Growth of the mean regret of a theorem's policy."""

    rounds: Rounds
    mean: Floats
    bound: Floats
    fits: dict[str, float]  # R² of a + b·order, after the first tenth of rounds
    slowdown: MeanRatio  # of regret/order at the end to regret/order after a tenth of the rounds
    min_bound_ratio: float  # minimum of bound over regret

    @property
    def is_bounded(self) -> bool:
        """Whether the bound holds at every checkpoint."""
        return bool((self.mean <= self.bound).all())


def analyse(frames: Frames) -> StudyResult:
    """Return whether the bounds hold, and which order fits regret best."""
    growths = {name: _growth(frames, name) for name in THEOREMS}
    ratios = {name: _size_ratios(frames, name) for name in THEOREMS}
    bound_ratios = {name: _bound_size_ratios(frames, name) for name in THEOREMS}
    checks = []
    for name, theorem in THEOREMS.items():
        growth = growths[name]
        checks += [
            Check(
                f"{theorem.label}: mean regret stays below the bound.",
                growth.is_bounded,
                f"the bound is at least {format_number(growth.min_bound_ratio)} times the regret",
                needs_full_run=False,  # the bound is one for every round
            ),
            Check(
                f"{theorem.label}: over the last tenfold increase of rounds mean regret grows no faster "
                f"than {theorem.order}, {BY_BOOTSTRAP}.",
                growth.slowdown.at_most_1,
                f"regret divided by {theorem.order} changes by a factor of {growth.slowdown}",
            ),
        ]
    n_bounded = sum(growth.is_bounded for growth in growths.values())
    ratio = min(growth.min_bound_ratio for growth in growths.values())
    best = {name: max(growth.fits, key=lambda order: growth.fits[order]) for name, growth in growths.items()}
    fitting = join_words(f"{order} for {THEOREMS[name].policy}" for name, order in best.items())
    findings = (
        f"{'All' if n_bounded == len(THEOREMS) else n_bounded} of the {len(THEOREMS)} bounds hold on Table "
        f"1, and the tightest is {format_number(ratio)} times the regret. Of {join_words(ORDERS)} the "
        f"order that fits best is {fitting}."
    )
    tables = [_fits_table(growths), _sizes_table(ratios, bound_ratios)]
    metrics = {
        name: {"minimum_bound_ratio": growth.min_bound_ratio, "best_order": best[name]}
        for name, growth in growths.items()
    }
    return StudyResult(findings, checks, [_figure(growths)], tables, metrics)


def _growth(frames: Frames, name: str) -> RegretGrowth:
    rounds, regrets = curve(frames[name])
    mean = regrets.mean(axis=0)
    theorem = THEOREMS[name]
    bound = theorem.bound(kdd2012(), rounds)
    late = rounds >= rounds[-1] / 10
    t, late_mean = rounds[late].astype(np.float64), mean[late]
    order = ORDERS[theorem.order](t)
    fits = {label: _r_squared(formula(t), late_mean) for label, formula in ORDERS.items()}
    first, last = regrets[:, late][:, 0] / order[0], regrets[:, -1] / order[-1]
    slowdown = ratio_of_means(np.maximum(first, 1e-12), last)
    return RegretGrowth(rounds, mean, bound, fits, slowdown, float((bound / np.maximum(mean, 1e-12)).min()))


def _r_squared(order: Floats, regret: Floats) -> float:
    """Return R² of the least-squares fit of a + b·order."""
    design = np.column_stack([np.ones_like(order), order])
    residuals = regret - design @ np.linalg.lstsq(design, regret, rcond=None)[0]
    variation = float(((regret - regret.mean()) ** 2).sum())
    return 1.0 - float((residuals**2).sum()) / variation if variation > 0 else 1.0


def _size_ratios(frames: Frames, name: str) -> SizeRatios:
    """Return the ratio of median regret over problems when N, M or K doubles."""
    return _over_base([float(frames[f"{size}-{name}"]["regret"].median()) for size in SIZES])


def _bound_size_ratios(frames: Frames, name: str) -> SizeRatios:
    """Return the ratio of the median bound over the same problems when N, M or K doubles."""
    medians = []
    for size in SIZES:
        frame = frames[f"{size}-{name}"]
        rounds = np.array([frame["round"].max()])
        values = [
            THEOREMS[name].bound(problem, rounds)[0]
            for problem in random_problems(size, int(frame["problem"].max()) + 1)
        ]
        medians.append(float(np.median(values)))
    return _over_base(medians)


def _over_base(medians: list[float]) -> SizeRatios:
    base, types, items, positions = medians
    return types / base, items / base, positions / base


def _fits_table(growths: dict[str, RegretGrowth]) -> Table:
    rows = [
        [
            f"{theorem.label}: {theorem.policy}",
            theorem.order,
            *(f"{growths[name].fits[order]:.4f}" for order in ORDERS),
        ]
        for name, theorem in THEOREMS.items()
    ]
    caption = "R² of a + b·order, fitted to mean regret over the last tenfold increase of rounds"
    return Table(caption, ["", "the theorem's order", *ORDERS], rows)


def _sizes_table(ratios: dict[str, SizeRatios], bound_ratios: dict[str, SizeRatios]) -> Table:
    rows = [
        [
            theorem.policy,
            *(
                f"{measured:.2f} ({format_number(bound)})"
                for measured, bound in zip(ratios[name], bound_ratios[name], strict=True)
            ),
        ]
        for name, theorem in THEOREMS.items()
    ]
    n, m, k = SIZES["base"]
    caption = (
        f"Ratio of median regret when one number doubles, from N = {n}, M = {m}, K = {k}; in parentheses, "
        "the ratio of the median bound"
    )
    return Table(caption, ["policy", "N doubled", "M doubled", "K doubled"], rows)


def _figure(growths: dict[str, RegretGrowth]) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        for axes, (name, growth) in zip(figure.subplots(2, 2).ravel(), growths.items(), strict=True):
            theorem = THEOREMS[name]
            late = growth.rounds >= growth.rounds[-1] / 10
            t = growth.rounds.astype(np.float64)
            order = ORDERS[theorem.order](t)
            order *= growth.mean[late][0] / order[late][0]
            axes.plot(t, growth.bound, color="C1", label="the theorem's bound")
            axes.plot(t[late], order[late], "--", color="C2", label=f"a multiple of {theorem.order}")
            axes.plot(t, growth.mean, color="C0", linewidth=1.8, label="mean regret")
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(f"{theorem.label}: {theorem.policy}", fontsize="medium", loc="left")
            axes.set_xlabel("round")
            axes.set_ylabel("regret")
            format_ticks(axes)
        figure.axes[0].legend(frameon=False, fontsize="small")

    caption = "Mean regret with the theorems' own schedules on Table 1, and the theorems' bounds."
    return ReportFigure("theorems", caption, draw, height=7.0)
