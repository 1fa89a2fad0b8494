"""How the data are read."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.curves import SPREAD, SUBLINEAR, at_round, draw_curves, growth, spread
from banditrank.experiments.paper_policies import LABELS as PAPER_LABELS
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.experiments.synthetic.sweep import EQUAL, PERSONALIZED
from banditrank.experiments.words import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {
    "greedy-personalized": PAPER_LABELS["greedy-personalized"],
    "ucb-personalized": PAPER_LABELS["ucb-personalized"],
    "baseline": "baseline (one type)",
    "greedy-utilitarian": PAPER_LABELS["greedy-equal"],
    "ucb-utilitarian": PAPER_LABELS["ucb-equal"],
    "greedy-nash": f"{PAPER_LABELS['greedy-equal']}, Nash",
    "ucb-nash": f"{PAPER_LABELS['ucb-equal']}, Nash",
}


def read(frames: Frames) -> Reading:
    """Return what the curves say."""
    horizon = int(frames["baseline"]["round"].max())
    final = {name: at_round(frames[name], horizon) for name in LABELS}
    exponents = {name: float(np.median(growth(frames[name], horizon // 10, horizon))) for name in LABELS}
    medians = {name: float(np.median(values)) for name, values in final.items()}
    proposed = [name for name in LABELS if name != "baseline"]
    linear = [LABELS[name] for name in proposed if exponents[name] >= SUBLINEAR]
    larger_personalized = max(medians["greedy-personalized"], medians["ucb-personalized"])
    checks = [
        Check(
            "The regret of every proposed policy is sub-linear: over the last tenfold of rounds it grows "
            f"with an exponent whose median is below {SUBLINEAR}.",
            not linear,
            "; ".join(f"{LABELS[name]} {exponents[name]:.2f}" for name in proposed),
        ),
        Check(
            "The baseline, which takes all users for one type, is linear and ends above both personalized "
            "policies.",
            exponents["baseline"] >= SUBLINEAR and medians["baseline"] > larger_personalized,
            f"exponent {exponents['baseline']:.2f}, regret {medians['baseline']:,.0f} against "
            f"{medians['greedy-personalized']:,.0f} and {medians['ucb-personalized']:,.0f}",
            of="implementation",
        ),
        *(_greedy_is_better(frames, medians, utility) for utility in ("utilitarian", "nash")),
    ]
    which = f"All but {listed(linear)}" if linear else "All"
    findings = (
        f"{which} of the {len(proposed)} proposed policies are sub-linear up to {horizon:,} rounds, and the "
        f"baseline's exponent is {exponents['baseline']:.2f}. Under equal treatment GreedyRank ends at "
        f"{medians['greedy-utilitarian'] / medians['ucb-utilitarian']:.2f} times UCBRank's regret by the "
        f"utilitarian criterion and at {medians['greedy-nash'] / medians['ucb-nash']:.2f} times by Nash's."
    )
    return Reading(
        findings, checks, [_picture(frames)], [_table(final, exponents, horizon)], {"regret": medians}
    )


def _greedy_is_better(frames: Frames, medians: dict[str, float], utility: str) -> Check:
    greedy, ucb = (frames[f"worlds-{name}-{utility}"]["regret"].to_numpy() for name in ("greedy", "ucb"))
    wins = f"better in {(greedy < ucb).sum()} of {len(greedy)} other worlds"
    lower = medians[f"greedy-{utility}"] < medians[f"ucb-{utility}"]
    evidence = f"{medians[f'greedy-{utility}']:,.0f} against {medians[f'ucb-{utility}']:,.0f}; {wins}"
    if utility == "utilitarian":
        return Check(
            "By the utilitarian criterion ET-GreedyRank has less regret than ET-UCBRank.", lower, evidence
        )
    return Check("By Nash's criterion ET-GreedyRank has more regret than ET-UCBRank.", not lower, evidence)


def _table(final: dict[str, NDArray[np.float64]], exponents: dict[str, float], horizon: int) -> Table:
    rows = [
        [label, *spread(final[name]), f"{final[name].mean():,.0f}", f"{exponents[name]:.2f}"]
        for name, label in LABELS.items()
    ]
    return Table(
        f"Regret after {horizon:,} rounds, and the exponent with which it grew over the last tenfold of them",
        ["policy", *SPREAD, "mean", "exponent"],
        rows,
    )


def _picture(frames: Frames) -> Picture:
    def draw(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2)
        utilitarian = [*PERSONALIZED, *(name for name in EQUAL if name.endswith("utilitarian"))]
        nash = [name for name in EQUAL if name.endswith("nash")]
        for axes, names in ((left, utilitarian), (right, nash)):
            draw_curves(axes, {LABELS[name]: frames[name] for name in names})
            axes.set_ylabel("regret")
            axes.legend(frameon=False, fontsize="small")
        left.set_title("personalized, and equal by the utilitarian criterion", fontsize="medium", loc="left")
        right.set_title("equal by Nash's criterion", fontsize="medium", loc="left")

    caption = "Regret over rounds: medians, in bands from the 10% to the 90% quantile of the replications."
    return Picture("regret", caption, draw)
