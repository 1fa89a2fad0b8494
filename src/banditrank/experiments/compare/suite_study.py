"""A suite as a study: how its data are read."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from banditrank.experiments.compare.line_up import FOR_SCALE, OURS, WINDOWED, knowledge
from banditrank.experiments.compare.parts import TIME, make_entrants, sweep
from banditrank.experiments.compare.scores import final_regret
from banditrank.experiments.compare.suites import Suite
from banditrank.experiments.curves import draw_curves
from banditrank.experiments.study import Frames, Picture, Reading, Study, Table
from banditrank.policies.violated_assumptions import violated_assumptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEADERS = 6  # whose curves are drawn
COLUMNS = (
    "policy",
    "knows of positions",
    "median",
    "10%",
    "90%",
    "worst seed",
    "× the best",
    "µs a round",
    "assumptions that do not hold here",
)


def make_study(suite: Suite, names: Sequence[str]) -> Study:
    """Return the study of a suite for some policies."""
    return Study(
        suite.name,
        suite.title,
        suite.why,
        partial(sweep, suite, names),
        partial(read, suite, names),
        suite.cut,
        heading="What it is",
        judged=False,
    )


def read(suite: Suite, names: Sequence[str], frames: Frames) -> Reading:
    """Return who lost least, and what everybody takes for granted that is not so."""
    data = {part: frame for part, frame in frames.items() if not part.startswith(TIME)}
    horizon = int(next(iter(data.values()))["round"].max())
    regrets = {label: final_regret(frame) for label, frame in data.items()}
    medians = {label: float(np.median(values)) for label, values in regrets.items()}
    order = sorted(medians, key=lambda label: medians[label])
    learners = [label for label in order if label != FOR_SCALE] or order
    broken = _violations(suite, names, horizon)
    microseconds = {label: microseconds_a_round(frames[f"{TIME}{label}"]) for label in data}
    best = max(medians[learners[0]], 1e-9)
    rows = [
        [
            label,
            knowledge(label),
            *(f"{value:,.0f}" for value in np.quantile(regrets[label], (0.5, 0.1, 0.9))),
            f"{regrets[label].max():,.0f}",
            f"{medians[label] / best:,.2f}",
            f"{microseconds[label]:,.1f}",
            "; ".join(broken[label]) or "–",
        ]
        for label in order
    ]
    figures = {
        "best": learners[0],
        "horizon": horizon,
        "replications": len(next(iter(regrets.values()))),
        "policies": {
            label: {
                "knows": knowledge(label),
                "median": medians[label],
                "q10": float(np.quantile(regrets[label], 0.1)),
                "q90": float(np.quantile(regrets[label], 0.9)),
                "worst": float(regrets[label].max()),
                "ratio": medians[label] / best,
                "microseconds": microseconds[label],
                "violations": list(broken[label]),
            }
            for label in order
        },
    }
    table = Table(f"Regret after {horizon:,} rounds, the least median first", COLUMNS, rows)
    return Reading(_findings(medians, learners), [], [_picture(data, learners)], [table], figures)


def microseconds_a_round(frame: "pd.DataFrame") -> float:
    """Return what a round cost in the timed run."""
    return float(1e6 * frame["seconds"].sum() / frame["rounds"].sum())


def _violations(suite: Suite, names: Sequence[str], horizon: int) -> dict[str, list[str]]:
    problem = suite.make(horizon)
    found = {}
    for entrant, policy in make_entrants(suite, names, horizon):
        sentences = violated_assumptions(
            policy, problem, rewards=suite.rewards, click_model=suite.click_model
        )
        found[entrant.label] = [each.removeprefix(f"{policy.name} ").removesuffix(".") for each in sentences]
    return found


def _findings(medians: dict[str, float], learners: list[str]) -> str:
    first = learners[0]
    if first == FOR_SCALE:
        return f"Only random rankings took part, which lose {medians[first]:,.0f}."
    knowing = knowledge(first)
    told = "" if knowing == "nothing" else f" ({knowing})"
    blind = [label for label in learners if knowledge(label) == "nothing"]
    least = f"{first}{told} has the least median regret, {medians[first]:,.0f}"
    if blind and blind[0] != first:
        least += f"; of those that know nothing of positions {blind[0]} has, {medians[blind[0]]:,.0f}"
    if FOR_SCALE not in medians:
        return f"{least}. Random rankings did not take part."
    share = medians[first] / max(medians[FOR_SCALE], 1e-9)
    return f"{least}. Random rankings lose {medians[FOR_SCALE]:,.0f}, so the best loses {share:.1%} of that."


def _picture(data: Frames, learners: list[str]) -> Picture:
    drawn = learners[:LEADERS]
    drawn += [label for label in learners[LEADERS:] if label.removesuffix(WINDOWED) == OURS][:1]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        draw_curves(axes, {label: data[label] for label in drawn})
        axes.set_ylabel("regret")
        axes.legend(frameon=False, fontsize="small")

    who = f"the {len(drawn)} policies that lost least" if len(drawn) > 1 else drawn[0]
    caption = (
        f"Regret over rounds of {who}, both axes logarithmic: medians, in bands from the 10% to the 90% "
        "quantile of the replications."
    )
    return Picture("regret", caption, draw, width=8.0, height=4.2)
