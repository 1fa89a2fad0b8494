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
)
from banditrank.experiments._formatting import join_words
from banditrank.experiments._significance import BY_RANK_TEST, rank_test
from banditrank.experiments._study import Check, Frames, StudyResult
from banditrank.experiments._synthetic.sweep import BASELINE, EQUAL, PERSONALIZED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

POLICIES = {**PERSONALIZED, **EQUAL}


def analyse(frames: Frames) -> StudyResult:
    """Return the order of regret of each policy, and which policy is best under which utility."""
    horizon = int(frames[BASELINE]["round"].max())
    final = {name: at_round(frames[name], horizon) for name in POLICIES}
    exponents = {
        name: float(np.median(growth_exponents(frames[name], horizon // 10, horizon))) for name in POLICIES
    }
    medians = {name: float(np.median(values)) for name, values in final.items()}
    proposed = [name for name in POLICIES if name != BASELINE]
    linear = [name for name in proposed if exponents[name] >= SUBLINEAR]
    checks = [
        Check(
            "The regret of every proposed policy is sub-linear: over the last tenfold increase of rounds the "
            f"median growth exponent is below {SUBLINEAR}.",
            not linear,
            "; ".join(f"{name} {exponents[name]:.2f}" for name in proposed),
        ),
        _baseline_check(final, exponents[BASELINE]),
        *(_greedy_check(frames, final, utility) for utility in ("utilitarian", "nash")),
    ]
    which = f"All but {join_words(linear)}" if linear else "All"
    findings = (
        f"{which} of the {len(proposed)} proposed policies are sub-linear after {horizon:,} rounds, and the "
        f"baseline's exponent is {exponents[BASELINE]:.2f}. Under equal treatment greedy-rank ends at "
        f"{_ratio(medians, 'utilitarian'):.2f} times ucb-rank's regret by the utilitarian criterion and at "
        f"{_ratio(medians, 'nash'):.2f} times by Nash's."
    )
    return StudyResult(
        findings, checks, [_figure(frames)], [_table(final, exponents, horizon)], {"regret": medians}
    )


def _ratio(medians: dict[str, float], utility: str) -> float:
    return medians[f"greedy-rank-equal-{utility}"] / medians[f"ucb-rank-equal-{utility}"]


def _baseline_check(final: dict[str, Floats], exponent: float) -> Check:
    names = ("greedy-rank-personalized", "ucb-rank-personalized")
    answers = {rank_test(final[BASELINE], final[name]).greater for name in names} | {exponent >= SUBLINEAR}
    regrets = [f"{np.median(final[name]):,.0f}" for name in (BASELINE, *names)]
    return Check(
        "The baseline, type-blind-ucb, which ignores user types, is linear and ends above both other "
        f"personalized policies, {BY_RANK_TEST} each.",
        False if False in answers else None if None in answers else True,
        f"exponent {exponent:.2f}, median regret {regrets[0]} against {join_words(regrets[1:])}",
        claimed_by="implementation",
    )


def _greedy_check(frames: Frames, final: dict[str, Floats], utility: str) -> Check:
    names = (f"greedy-rank-equal-{utility}", f"ucb-rank-equal-{utility}")
    greedy, ucb = (final[name] for name in names)
    comparison = rank_test(greedy, ucb)
    others = [frames[f"other-problems-{name}"]["regret"].to_numpy() for name in names]
    criterion, word, holds = {
        "utilitarian": ("the utilitarian", "less", comparison.less),
        "nash": ("Nash's", "more", comparison.greater),
    }[utility]
    return Check(
        f"By {criterion} criterion {names[0]} has {word} regret than {names[1]}, {BY_RANK_TEST} over the "
        "replications.",
        holds,
        f"median {np.median(greedy):,.0f} against {np.median(ucb):,.0f}, {comparison}; less in "
        f"{(others[0] < others[1]).sum()} of {len(others[0])} other problems",
    )


def _table(final: dict[str, Floats], exponents: dict[str, float], horizon: int) -> Table:
    rows = [
        [name, *format_quantiles(final[name]), f"{final[name].mean():,.0f}", f"{exponents[name]:.2f}"]
        for name in POLICIES
    ]
    return Table(
        f"Regret after {horizon:,} rounds, and its growth exponent over the last tenfold increase of rounds",
        ["policy", *QUANTILE_HEADINGS, "mean", "exponent"],
        rows,
    )


def _figure(frames: Frames) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        policies = {name: policy.name for name, policy in {**PERSONALIZED, **EQUAL}.items()}
        panels = {
            "personalized treatment": PERSONALIZED,
            "equal, utilitarian": [name for name in EQUAL if name.endswith("utilitarian")],
            "equal, Nash": [name for name in EQUAL if name.endswith("nash")],
        }
        for axes, (heading, names) in zip(figure.subplots(1, 3), panels.items(), strict=True):
            draw_curves(axes, {name: frames[name] for name in names}, policies=policies)
            axes.set_ylabel("regret")
            axes.set_title(heading)
            axes.set_ylim(bottom=0)
            axes.legend(loc="upper left")

    caption = (
        "Regret over rounds: medians, in bands from the 10% to the 90% quantile of the replications. Each "
        "panel's regret is relative to another optimum."
    )
    return ReportFigure("regret", caption, draw, width=11.0)
