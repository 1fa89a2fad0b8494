"""How the data are read."""

import math
from typing import TYPE_CHECKING, Literal

from banditrank.experiments.lemmas.sweep import PROMISES, WITHOUT_T
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.experiments.words import listed
from banditrank.figures import style_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEMMAS = {
    1: "Lemma 1, position preferences",
    2: "Lemma 2, item means",
    3: "Lemma 3 (appendix), arrival rates",
}
TYPICAL = 0.05  # the promise that the findings speak of
ERROR_RATE = 1e-4  # of finding a promise broken by chance, for each quantity


def read(frames: Frames) -> Reading:
    """Return which promises were kept."""
    import pandas as pd  # noqa: PLC0415 - heavy

    data = pd.concat(frames, names=["part"]).reset_index(level="part")
    data = data[data["runs"] > 0]  # where a lemma's condition never holds it promises nothing
    data["rate"] = data["misses"] / data["runs"]
    data["broken"] = [
        _is_broken(misses, runs, promise)
        for misses, runs, promise in zip(data["misses"], data["runs"], data["promise"], strict=True)
    ]
    checks = [_check(data[data["lemma"] == lemma], label) for lemma, label in LEMMAS.items()]
    checks.append(
        _check(
            data[data["lemma"] == WITHOUT_T],
            "Lemma 3 without its factor t",
            "implementation",
        )
    )
    answers = list(zip(LEMMAS, checks, strict=False))
    kept = [f"Lemma {lemma}" for lemma, check in answers if check.holds]
    broken = [f"Lemma {lemma}" for lemma, check in answers if not check.holds]
    worst = {
        (lemma, promise): float(
            data.loc[(data["lemma"] == lemma) & (data["promise"] == promise), "rate"].max()
        )
        for lemma in LEMMAS
        for promise in PROMISES
    }
    rates = listed(f"{worst[lemma, TYPICAL]:.1%} of the runs (Lemma {lemma})" for lemma in LEMMAS)
    findings = (
        f"The data bear out {listed(kept)}, and contradict {listed(broken)}. Where a lemma promises that an "
        f"estimate is off by its radius in {TYPICAL:.0%} of the runs at most, the worst one is in {rates}."
    )
    figures = {f"lemma-{lemma}/{promise}": rate for (lemma, promise), rate in worst.items()}
    return Reading(findings, checks, [_picture(worst)], [_table(data)], figures)


def _check(data: "pd.DataFrame", label: str, of: Literal["paper", "implementation"] = "paper") -> Check:
    broken = int(data["broken"].sum())
    return Check(
        f"{label}: no estimate is off by its radius more often than is promised.",
        broken == 0 if len(data) else None,
        f"{len(data) - broken:,} of {len(data):,} promises kept, one a policy, round, quantity and rate",
        of=of,
    )


def _is_broken(misses: int, runs: int, promise: float) -> bool:
    """Return whether so many misses would be too rare by chance if the promise were kept.

    By Chernoff's bound: P(share of misses ≥ x) ≤ exp(−R·KL(x, p)) for x > p.
    """
    share = misses / max(runs, 1)
    if share <= promise:
        return False
    divergence = share * math.log(share / promise)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - promise))
    return bool(math.exp(-runs * divergence) < ERROR_RATE)


def _table(data: "pd.DataFrame") -> Table:
    worst = data.groupby(["lemma", "round", "promise"])["rate"].max()
    rows = [
        [label, f"{rounds:,}", *(f"{worst[lemma, rounds, promise]:.1%}" for promise in PROMISES)]
        for lemma, label in LEMMAS.items()
        for rounds in sorted(data["round"].unique())
    ]
    columns = ["", "round", *(f"promised {promise:.0%}" for promise in PROMISES)]
    caption = "How often the worst estimate, over all policies and quantities, is off by its radius"
    return Table(caption, columns, rows)


def _picture(worst: dict[tuple[int, float], float]) -> Picture:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for number, (lemma, label) in enumerate(LEMMAS.items()):
            rates = [max(worst[lemma, promise], 1e-4) for promise in PROMISES]
            axes.plot(PROMISES, rates, "o-", color=f"C{number}", label=label)
        axes.plot([0.01, 0.5], [0.01, 0.5], "--", color="C6", linewidth=1, label="as promised")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(8e-5, 1.3)
        axes.set_xlabel("promised rate")
        axes.set_ylabel("rate of being off (never: 0.0001)")
        axes.legend(frameon=False, fontsize="small")
        style_axes(axes)

    caption = "How often the worst estimate is off by more than the lemma's radius, against what it promises."
    return Picture("coverage", caption, draw, width=6.5)
