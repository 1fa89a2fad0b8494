"""How the data are read."""

import math
from typing import TYPE_CHECKING

from banditrank.experiments.lemmas.sweep import PROMISES
from banditrank.experiments.study import Check, Frames, Picture, Reading, Table
from banditrank.figures import tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEMMAS = {
    1: "Lemma 1, position preferences",
    2: "Lemma 2, item means",
    3: "Lemma 3 (appendix), arrival rates",
}
ERROR_RATE = 1e-4  # of finding a promise broken by chance, for each quantity


def read(frames: Frames, _quick: bool) -> Reading:  # noqa: FBT001 - as `Study` has it
    """Return which promises were kept."""
    import pandas as pd  # noqa: PLC0415 - heavy

    data = pd.concat(frames, names=["part"]).reset_index(level="part")
    data["rate"] = data["misses"] / data["runs"].clip(lower=1)
    data["broken"] = [
        _is_broken(misses, runs, promise)
        for misses, runs, promise in zip(data["misses"], data["runs"], data["promise"], strict=True)
    ]
    checks = [_check(data[data["lemma"] == lemma], label) for lemma, label in LEMMAS.items()]
    worst = data.groupby(["lemma", "promise"])["rate"].max()
    broken = data.groupby("lemma")["broken"].sum()
    kept = [label.split(",")[0] for lemma, label in LEMMAS.items() if broken[lemma] == 0]
    not_kept = [label.split(",")[0] for lemma, label in LEMMAS.items() if broken[lemma] > 0]
    findings = (
        f"Kept: {', '.join(kept) or 'none'}; broken: {', '.join(not_kept) or 'none'}. Where a rate of 5% is promised, "
        f"the worst estimate missed in {worst[1, 0.05]:.1%} (Lemma 1), {worst[2, 0.05]:.1%} (Lemma 2) and "
        f"{worst[3, 0.05]:.1%} (Lemma 3, whose factor t should not be there) of the runs."
    )
    figures = {f"lemma-{lemma}/{promise}": float(rate) for (lemma, promise), rate in worst.items()}
    return Reading(findings, checks, [_picture(worst)], [_table(data)], figures)


def _check(data: "pd.DataFrame", label: str) -> Check:
    broken = int(data["broken"].sum())
    return Check(
        f"{label}: no estimate misses more often than is promised.",
        broken == 0,
        f"{len(data) - broken} of {len(data)} promises kept (policy, round, quantity and rate)",
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
    return Table("How often the worst estimate misses, over all policies and quantities", columns, rows)


def _picture(worst: "pd.Series[float]") -> Picture:
    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for number, (lemma, label) in enumerate(LEMMAS.items()):
            rates = [max(float(worst[lemma, promise]), 1e-4) for promise in PROMISES]
            axes.plot(PROMISES, rates, "o-", color=f"C{number}", label=label)
        axes.plot([0.01, 0.5], [0.01, 0.5], "--", color="C6", linewidth=1, label="as promised")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(8e-5, 1.3)
        axes.set_xlabel("promised rate of misses")
        axes.set_ylabel("rate of misses (never: 0.0001)")
        axes.legend(frameon=False, fontsize="small")
        tidy(axes)

    caption = "How often the worst estimate is off by more than the lemma's radius, against what it promises."
    return Picture("coverage", caption, draw, width=6.5)
