"""Analysis of how often errors of estimates exceed the lemmas' bounds."""

import math
from typing import TYPE_CHECKING, Literal

from banditrank._extras import requires
from banditrank._figures import format_ticks
from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._formatting import join_words
from banditrank.experiments._lemmas.sweep import MISS_RATES, WITHOUT_T
from banditrank.experiments._study import Check, Frames, StudyResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEMMAS = {
    1: "Lemma 1, position preferences",
    2: "Lemma 2, item means",
    3: "Lemma 3 (appendix), arrival rates",
}
TYPICAL_MISS_RATE = 0.05  # the bound that the findings report on
ERROR_RATE = 1e-4  # of a false violation, for each estimate


def analyse(frames: Frames) -> StudyResult:
    """Return which lemmas' bounds hold."""
    with requires("reports", "the study"):
        import pandas as pd  # noqa: PLC0415 - heavy, and optional

    data = pd.concat(frames, names=["job"]).reset_index(level="job")
    data = data[data["runs"] > 0]  # a lemma whose condition never holds promises nothing
    data["rate"] = data["misses"] / data["runs"]
    data["violated"] = [
        _is_violated(misses, runs, miss_rate)
        for misses, runs, miss_rate in zip(data["misses"], data["runs"], data["miss_rate"], strict=True)
    ]
    checks = [_check(data[data["lemma"] == lemma], label) for lemma, label in LEMMAS.items()]
    checks.append(_check(data[data["lemma"] == WITHOUT_T], "Lemma 3 without its factor t", "implementation"))
    answers = list(zip(LEMMAS, checks, strict=False))
    confirmed = [f"Lemma {lemma}" for lemma, check in answers if check.holds]
    contradicted = [f"Lemma {lemma}" for lemma, check in answers if not check.holds]
    worst = {
        (lemma, miss_rate): float(
            data.loc[(data["lemma"] == lemma) & (data["miss_rate"] == miss_rate), "rate"].max()
        )
        for lemma in LEMMAS
        for miss_rate in MISS_RATES
    }
    rates = join_words(
        f"{worst[lemma, TYPICAL_MISS_RATE]:.1%} of the runs (Lemma {lemma})" for lemma in LEMMAS
    )
    findings = (
        f"The data confirm {join_words(confirmed)} and contradict {join_words(contradicted)}. Where a lemma "
        f"bounds the rate of errors above its radius by {TYPICAL_MISS_RATE:.0%}, the worst estimate exceeds "
        f"the radius in {rates}."
    )
    metrics = {f"lemma-{lemma}/{miss_rate}": rate for (lemma, miss_rate), rate in worst.items()}
    return StudyResult(findings, checks, [_figure(worst)], [_table(data)], metrics)


def _check(
    data: "pd.DataFrame", label: str, claimed_by: Literal["paper", "implementation"] = "paper"
) -> Check:
    n_violated = int(data["violated"].sum())
    return Check(
        f"{label}: no error exceeds its radius more often than the bound allows.",
        n_violated == 0 if len(data) else None,
        f"{len(data) - n_violated:,} of {len(data):,} bounds hold, one per policy, round, estimate and rate",
        claimed_by=claimed_by,
        needs_full_run=False,  # it is tested whether errors are too frequent
    )


def _is_violated(misses: int, runs: int, miss_rate: float) -> bool:
    """Return whether so many misses are too improbable under the bound.

    By Chernoff's bound: P(share of misses ≥ x) ≤ exp(−R·KL(x, p)) for x > p.
    """
    share = misses / max(runs, 1)
    if share <= miss_rate:
        return False
    divergence = share * math.log(share / miss_rate)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - miss_rate))
    return bool(math.exp(-runs * divergence) < ERROR_RATE)


def _table(data: "pd.DataFrame") -> Table:
    worst = data.groupby(["lemma", "round", "miss_rate"])["rate"].max()
    rows = [
        [label, f"{rounds:,}", *(f"{worst[lemma, rounds, miss_rate]:.1%}" for miss_rate in MISS_RATES)]
        for lemma, label in LEMMAS.items()
        for rounds in sorted(data["round"].unique())
    ]
    columns = ["", "round", *(f"bound {miss_rate:.0%}" for miss_rate in MISS_RATES)]
    caption = "Rate of errors above the radius, of the worst estimate over all policies"
    return Table(caption, columns, rows)


def _figure(worst: dict[tuple[int, float], float]) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for index, (lemma, label) in enumerate(LEMMAS.items()):
            rates = [max(worst[lemma, miss_rate], 1e-4) for miss_rate in MISS_RATES]
            axes.plot(MISS_RATES, rates, "o-", color=f"C{index}", label=label)
        axes.plot([0.01, 0.5], [0.01, 0.5], "--", color="C6", linewidth=1, label="the bound")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(8e-5, 1.3)
        axes.set_xlabel("bound on the rate")
        axes.set_ylabel("rate of errors above the radius (none: 0.0001)")
        axes.legend(frameon=False, fontsize="small")
        format_ticks(axes)

    caption = "Rate of errors above the lemma's radius, of the worst estimate, against the lemma's bound."
    return ReportFigure("coverage", caption, draw, width=6.5)
