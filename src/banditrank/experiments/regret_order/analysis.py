"""How the data are read."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.comparison import BY_BOOTSTRAP, Factor, factor_of_means
from banditrank.experiments.curves import curve
from banditrank.experiments.paper_policies import LABELS
from banditrank.experiments.regret_order import bounds
from banditrank.experiments.regret_order.sweep import SIZES, worlds
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.experiments.words import listed, rounded
from banditrank.figures import style_axes
from banditrank.model.catalog import kdd2012
from banditrank.model.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Rounds = NDArray[np.int64]
Factors = tuple[float, float, float]


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
    """What a theorem says, as far as it can be compared."""

    label: str
    policy: str
    bound: Callable[[Problem, Rounds], Floats]
    order: str


THEOREMS = {
    "theorem-1": Theorem("Theorem 1", LABELS["greedy-personalized"], bounds.theorem_1, "√t ln t"),
    "theorem-2": Theorem("Theorem 2", LABELS["ucb-personalized"], bounds.theorem_2, "√(t ln t)"),
    "theorem-3": Theorem("Theorem 3", LABELS["greedy-equal"], bounds.theorem_3, "√t ln t"),
    "theorem-4": Theorem("Theorem 4", LABELS["ucb-equal"], bounds.theorem_4, "√(t ln t)"),
}


class Growth(NamedTuple):
    """How the mean regret of a theorem's policy grows."""

    rounds: Rounds
    mean: Floats
    bound: Floats
    fits: dict[str, float]  # R² of a + b·order, from the end of the first tenth of rounds on
    slowing: Factor  # regret over order at the end, over the same a tenth of the way
    least_room: float  # bound over regret, where that is least

    @property
    def is_bounded(self) -> bool:
        """Whether the bound holds at every checkpoint."""
        return bool((self.mean <= self.bound).all())


def read(frames: Frames) -> Reading:
    """Return what the curves say."""
    growths = {name: _growth(frames, name) for name in THEOREMS}
    factors = {name: _factors(frames, name) for name in THEOREMS}
    bound_factors = {name: _bound_factors(frames, name) for name in THEOREMS}
    checks = []
    for name, theorem in THEOREMS.items():
        growth = growths[name]
        checks += [
            Check(
                f"{theorem.label}: mean regret stays below the bound.",
                growth.is_bounded,
                f"the bound is never less than {rounded(growth.least_room)} times the regret",
            ),
            Check(
                f"{theorem.label}: over the last tenfold of rounds mean regret grows no faster than "
                f"{theorem.order}, {BY_BOOTSTRAP}.",
                growth.slowing.at_most_1,
                f"regret divided by {theorem.order} changes by a factor of {growth.slowing}",
            ),
        ]
    below = sum(growth.is_bounded for growth in growths.values())
    room = min(growth.least_room for growth in growths.values())
    best = {name: max(growth.fits, key=lambda order: growth.fits[order]) for name, growth in growths.items()}
    findings = (
        f"{'All' if below == len(THEOREMS) else below} of the {len(THEOREMS)} bounds hold on Table 1's "
        f"world, and the closest is {rounded(room)} times the regret. Of {listed(ORDERS)} the order that "
        f"fits best is {listed(f'{order} for {THEOREMS[name].policy}' for name, order in best.items())}."
    )
    tables = [_fits(growths), _sizes(factors, bound_factors)]
    figures = {
        name: {"least_room": growth.least_room, "best_order": best[name]} for name, growth in growths.items()
    }
    return Reading(findings, checks, [_picture(growths)], tables, figures)


def _growth(frames: Frames, name: str) -> Growth:
    rounds, regrets = curve(frames[name])
    mean = regrets.mean(axis=0)
    theorem = THEOREMS[name]
    bound = theorem.bound(kdd2012(), rounds)
    late = rounds >= rounds[-1] / 10
    t, settled = rounds[late].astype(np.float64), mean[late]
    order = ORDERS[theorem.order](t)
    fits = {label: _explained(formula(t), settled) for label, formula in ORDERS.items()}
    first, last = regrets[:, late][:, 0] / order[0], regrets[:, -1] / order[-1]
    slowing = factor_of_means(np.maximum(first, 1e-12), last)
    return Growth(rounds, mean, bound, fits, slowing, float((bound / np.maximum(mean, 1e-12)).min()))


def _explained(order: Floats, regret: Floats) -> float:
    """Return R² of the least-squares fit of a + b·order."""
    design = np.column_stack([np.ones_like(order), order])
    residuals = regret - design @ np.linalg.lstsq(design, regret, rcond=None)[0]
    spread = float(((regret - regret.mean()) ** 2).sum())
    return 1.0 - float((residuals**2).sum()) / spread if spread > 0 else 1.0


def _factors(frames: Frames, name: str) -> Factors:
    """Return by how much the median regret over worlds grows when N, M, K double."""
    return _over_base([float(frames[f"{size}-{name}"]["regret"].median()) for size in SIZES])


def _bound_factors(frames: Frames, name: str) -> Factors:
    """Return by how much the median bound over the same worlds does."""
    medians = []
    for size in SIZES:
        frame = frames[f"{size}-{name}"]
        rounds = np.array([frame["round"].max()])
        values = [
            THEOREMS[name].bound(problem, rounds)[0]
            for problem in worlds(size, int(frame["world"].max()) + 1)
        ]
        medians.append(float(np.median(values)))
    return _over_base(medians)


def _over_base(medians: list[float]) -> Factors:
    base, types, items, positions = medians
    return types / base, items / base, positions / base


def _fits(growths: dict[str, Growth]) -> Table:
    rows = [
        [
            f"{theorem.label}: {theorem.policy}",
            theorem.order,
            *(f"{growths[name].fits[order]:.4f}" for order in ORDERS),
        ]
        for name, theorem in THEOREMS.items()
    ]
    caption = "R² of a + b·order, fitted to mean regret over the last tenfold of rounds, by order"
    return Table(caption, ["", "the theorem's order", *ORDERS], rows)


def _sizes(factors: dict[str, Factors], bound_factors: dict[str, Factors]) -> Table:
    rows = [
        [
            theorem.policy,
            *(
                f"{here:.2f} ({rounded(said)})"
                for here, said in zip(factors[name], bound_factors[name], strict=True)
            ),
        ]
        for name, theorem in THEOREMS.items()
    ]
    n, m, k = SIZES["base"]
    caption = (
        f"How many times as large median regret is when one number doubles, from N = {n}, M = {m}, K = {k}; "
        "in brackets, how many times as large the median bound is"
    )
    return Table(caption, ["policy", "N doubled", "M doubled", "K doubled"], rows)


def _picture(growths: dict[str, Growth]) -> Picture:
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
            style_axes(axes)
        figure.axes[0].legend(frameon=False, fontsize="small")

    caption = (
        "Mean regret with the theorems' own schedules on Table 1's world, and what the theorems bound it by."
    )
    return Picture("theorems", caption, draw, height=7.0)
