"""All suites together: the leaderboard."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank.experiments.compare.heat_map import draw_ratios
from banditrank.experiments.compare.line_up import FOR_SCALE, OURS, knowledge
from banditrank.experiments.compare.parts import TIME, make_entrants
from banditrank.experiments.compare.scores import Regrets, Score, better_of, final_regret, scores
from banditrank.experiments.compare.suite_study import microseconds_a_round
from banditrank.experiments.compare.suites import Suite
from banditrank.experiments.study import Check, Frames, Picture, Reading, Study, Table
from banditrank.policies.violated_assumptions import violated_assumptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = 1.25  # times the score of the best that knows of positions
CLAIM = (
    "In each suite a policy's ratio is the median of its regret over the replications, divided by the least "
    "such median among the policies of the same table; its score is the average of its ratios over the "
    "suites, so 1 is to be the best everywhere. Where worlds change, the better of a policy with and without "
    "a window counts. Random rankings are there for scale and never the best."
)


def make_study(suites: Sequence[Suite], names: Sequence[str]) -> Study:
    """Return the study that reads the data of all suites."""
    return Study(
        "leaderboard",
        "Leaderboard",
        CLAIM,
        lambda *_, **__: (),
        partial(read, suites, names),
        "",
        judged=False,
    )


def read(suites: Sequence[Suite], names: Sequence[str], frames: Frames) -> Reading:
    """Return the tables, the picture, and whether the default policy is where it should be."""
    regrets = {suite.name: _regrets(suite, frames) for suite in suites}
    names = [name for name in names if any(name in by_policy for by_policy in regrets.values())]
    blind = [name for name in names if knowledge(name) == "nothing"]
    of_blind, of_all = scores(regrets, blind), scores(regrets, names)
    seconds = {name: _microseconds(suites, name, frames) for name in names}
    broken = _broken(suites, names, frames)
    tables = [
        _table(f"{what}, ranked among themselves", found, seconds, broken)
        for what, found in (("Policies that know nothing of positions", of_blind), ("All policies", of_all))
        if found
    ]
    tables.append(_medians(suites, of_all, regrets))
    figures = {
        "scores": {score.policy: score.average for score in of_all},
        "scores_knowing_nothing": {score.policy: score.average for score in of_blind},
        "worst_seeds": {score.policy: score.average_worst_seed for score in of_all},
        "microseconds": seconds,
        "violated_suites": broken,
        "knows": {name: knowledge(name) for name in names},
    }
    return Reading(
        _findings(of_blind, of_all),
        _checks(of_blind, of_all),
        [_picture(suites, of_all)],
        tables,
        figures,
    )


def _regrets(suite: Suite, frames: Frames) -> dict[str, NDArray[np.float64]]:
    prefix = f"{suite.name}/"
    results = {
        part.removeprefix(prefix): final_regret(frame)
        for part, frame in frames.items()
        if part.startswith(prefix) and not part.removeprefix(prefix).startswith(TIME)
    }
    return better_of(results)


def _microseconds(suites: Sequence[Suite], name: str, frames: Frames) -> float:
    """Return what a round costs, the median over suites."""
    parts = [f"{suite.name}/{TIME}{name}" for suite in suites]
    return float(np.median([microseconds_a_round(frames[part]) for part in parts if part in frames]))


def _broken(suites: Sequence[Suite], names: Sequence[str], frames: Frames) -> dict[str, int]:
    """Return in how many suites something does not hold that a policy takes for granted."""
    counts = dict.fromkeys(names, 0)
    for suite in suites:
        horizon = next(
            int(frames[part]["round"].max()) for part in frames if part.startswith(f"{suite.name}/")
        )
        problem = suite.make(horizon)
        for entrant, policy in make_entrants(suite, names, horizon):
            if entrant.memory is None and entrant.name in counts:
                counts[entrant.name] += bool(
                    violated_assumptions(
                        policy, problem, rewards=suite.rewards, click_model=suite.click_model
                    )
                )
    return counts


def _findings(of_blind: Sequence[Score], of_all: Sequence[Score]) -> str:
    first = [score for score in of_all if score.policy != FOR_SCALE]
    if not first:
        return "Only random rankings took part, which are there for scale."
    text = f"{first[0].policy} ({_told(first[0].policy)}) has the least score of all, {first[0].average:.2f}"
    learners = [score for score in of_blind if score.policy != FOR_SCALE]
    if not learners:
        others = " but random rankings" if of_blind else ""
        return f"{text}. No policy that knows nothing of positions took part{others}."
    return (
        f"{text}. Of those that know nothing of positions it is {learners[0].policy}, which loses "
        f"{learners[0].average:.2f} times as much as the best of them on average, and most, "
        f"{learners[0].ratios[learners[0].worst_suite]:.2f} times, in {learners[0].worst_suite}."
    )


def _told(name: str) -> str:
    known = knowledge(name)
    return "knows nothing of positions" if known == "nothing" else known


def _checks(of_blind: Sequence[Score], of_all: Sequence[Score]) -> list[Check]:
    """Return whether the default policy, if it takes part, is at the head."""
    own = next((score for score in of_blind if score.policy == OURS), None)
    rivals = [score for score in of_blind if score.policy not in (OURS, FOR_SCALE)]
    if own is None or not rivals:
        return []
    checks = [
        Check(
            f"{OURS}, the default policy, has the least score of all that know nothing of positions.",
            own.average <= rivals[0].average,
            f"{own.average:.2f}, and the best of the others, {rivals[0].policy}, {rivals[0].average:.2f}",
            of="implementation",
        )
    ]
    told = [score for score in of_all if knowledge(score.policy) != "nothing"]
    if told:
        average = {score.policy: score.average for score in of_all}[OURS]
        checks.append(
            Check(
                f"{OURS} has at most {WITHIN} times the score of the best policy that knows of positions.",
                average <= WITHIN * told[0].average,
                f"{average:.2f} against {told[0].average:.2f} of {told[0].policy} ({_told(told[0].policy)}): "
                f"{average / told[0].average:.2f} times",
                of="implementation",
            )
        )
    return checks


def _table(
    caption: str,
    found: Sequence[Score],
    microseconds: Mapping[str, float],
    broken: Mapping[str, int],
) -> Table:
    rows = [
        [
            score.policy,
            knowledge(score.policy),
            f"{score.average:,.2f}",
            f"{score.average_worst_seed:,.2f}",
            f"{max(score.ratios.values()):,.2f}",
            score.worst_suite,
            f"{microseconds[score.policy]:,.1f}",
            f"{broken[score.policy]} of {len(score.ratios)}",
        ]
        for score in found
    ]
    columns = [
        "policy",
        "knows of positions",
        "score",
        "worst seeds' score",
        "worst ratio",
        "in suite",
        "µs a round",
        "suites that break an assumption",
    ]
    return Table(caption, columns, rows)


def _medians(suites: Sequence[Suite], found: Sequence[Score], regrets: Regrets) -> Table:
    rows = [
        [score.policy, *(_median(regrets[suite.name], score.policy) for suite in suites)] for score in found
    ]
    return Table("Median regret by suite", ["policy", *(suite.name for suite in suites)], rows)


def _median(by_policy: Mapping[str, NDArray[np.float64]], name: str) -> str:
    return f"{np.median(by_policy[name]):,.0f}" if name in by_policy else "–"


def _picture(suites: Sequence[Suite], found: Sequence[Score]) -> Picture:
    def draw(figure: "Figure") -> None:
        draw_ratios(
            figure,
            [f"{score.policy} · {_SHORT[knowledge(score.policy)]}" for score in found],
            [suite.name for suite in suites],
            np.array([[score.ratios.get(suite.name, np.nan) for suite in suites] for score in found]),
        )

    caption = (
        "Median regret over the least of all policies', by suite: 1 is the best, and the darker the more is "
        "lost. After a policy's name stands what it knows of positions; the best score is at the top."
    )
    height = 1.6 + 0.3 * len(found)
    return Picture("ratios", caption, draw, width=max(6.5, 3.4 + 0.6 * len(suites)), height=height)


_SHORT = {
    "nothing": "nothing",
    "order assumed": "assumes order",
    "order given": "order",
    "examination known": "examination",
}
