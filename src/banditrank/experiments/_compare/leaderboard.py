"""Leaderboard: scores of all policies over all suites."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._compare.names import TIMING_PREFIX
from banditrank.experiments._compare.policy_variants import (
    DEFAULT_POLICY,
    RANDOM_POLICY,
    ComparedPolicy,
    PositionKnowledge,
    position_knowledge,
)
from banditrank.experiments._compare.scores import Regrets, Score, better_variant, final_regret, scores
from banditrank.experiments._compare.suite_study import (
    format_share,
    microseconds_per_round,
    suite_least_slope,
    violations_by_policy,
)
from banditrank.experiments._compare.suites import Suite
from banditrank.experiments._curves import curve
from banditrank.experiments._study import Check, Frames, Study, StudyResult
from banditrank.simulation._steep_runs import STEEP_FACTOR, steep_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_SCORE = 1.3  # of the default policy, among policies without position knowledge
MAX_RATIO = 2.0  # of the same in any suite
MAX_SCORE_RATIO = 1.25  # of the default policy, to the best policy with position knowledge
CLAIM = (
    "In each suite a policy's ratio is its mean regret over the replications, divided by the lowest such "
    "mean of the policies in the same table; its score is the mean of its ratios over the suites, so 1 is "
    "the best possible. The 95% score is the same for the 95th percentile of its regret instead of its mean; "
    "a slow run has more than 3 times the median regret of the policy's runs. The regret of a steep run "
    f"grows per ln t by more than {STEEP_FACTOR:g} times the least slope of consistent policies in the long "
    "run (the Graves–Lai constant) over the last half of rounds, as linear regret does; the share is the "
    "mean over the suites whose constant is known, – if there is none. Where problems change, the better of "
    "a policy with and without a window counts. Random rankings are a reference and never count as the best. "
)
TUNED = (
    "The constants of thompson-rank were chosen on problems of some of these suites, which favours it; "
    "--held-out compares on others."
)
HELD_OUT = (
    "The problems are held out: no constant of a policy was chosen on them, except that there is one Table 1 "
    "and one carousel."
)
MAX_COLOUR_RATIO = 100.0  # higher ratios have the same colour
_MIN_DARK_SHADE = 0.5  # cells from this shade have light text
_SHORT_KNOWLEDGE = {
    "nothing": "nothing",
    "order assumed": "assumes order",
    "order given": "order",
    "examination known": "examination",
}


def make_study(suites: Sequence[Suite], policies: Sequence[ComparedPolicy]) -> Study:
    """Return the study that analyses the data of all suites."""
    tuned = TUNED if any(suite.held_out is not None for suite in suites) else ""
    return Study(
        "leaderboard",
        "Leaderboard",
        f"{CLAIM}{HELD_OUT if all(suite.is_held_out for suite in suites) else tuned}".strip(),
        lambda *_, **__: (),
        partial(analyse, suites, policies),
        "",
        has_agreement=False,
    )


def analyse(suites: Sequence[Suite], policies: Sequence[ComparedPolicy], frames: Frames) -> StudyResult:
    """Return the leaderboards, and whether the default policy leads."""
    regrets = {suite.name: _regrets(suite, frames) for suite in suites}
    policies = [
        policy for policy in policies if any(policy.name in by_policy for by_policy in regrets.values())
    ]
    names = [policy.name for policy in policies]
    knowledge = position_knowledge(policies)
    without_knowledge = [name for name in names if knowledge[name] == "nothing"]
    scores_without, all_scores = scores(regrets, without_knowledge), scores(regrets, names)
    costs = {name: _microseconds_per_round(suites, name, frames) for name in names}
    violated = _count_violated_suites(suites, policies, frames)
    steep_shares = _steep_shares(suites, names, frames)
    tables = [
        _table(caption, found, steep_shares, costs, violated, knowledge)
        for caption, found in (
            ("Policies without position knowledge, compared with each other", scores_without),
            ("All policies, compared with each other", all_scores),
        )
        if found and (found is all_scores or len(found) < len(all_scores))
    ]
    absences = _absences(suites, policies, frames, regrets)
    tables.append(_means_table(suites, all_scores, regrets, absences))
    metrics = {
        "scores": {score.policy: score.average for score in all_scores},
        "scores_without_position_knowledge": {score.policy: score.average for score in scores_without},
        "percentile_95_scores": {score.policy: score.average_tail for score in all_scores},
        "slow_run_shares": {score.policy: score.slow_share for score in all_scores},
        "steep_run_shares": {score.policy: steep_shares[score.policy] for score in all_scores},
        "microseconds_per_round": costs,
        "violated_suites": violated,
        "position_knowledge": {name: knowledge[name] for name in names},
        "custom_policies": {
            policy.name: policy.custom.label for policy in policies if policy.custom is not None
        },
    }
    built_in = [policy.name for policy in policies if policy.custom is None]
    return StudyResult(
        _findings(scores_without, all_scores, knowledge),
        _checks(scores_without, all_scores, knowledge, built_in),
        [_figure(suites, all_scores, knowledge, absences)],
        tables,
        metrics,
    )


def _absences(
    suites: Sequence[Suite], policies: Sequence[ComparedPolicy], frames: Frames, regrets: Regrets
) -> str:
    """Return which policies did not run in which suites, and why."""
    listed = [
        f"{policy.name} in {suite.name} ({policy.absence(suite, _horizon(suite, frames))})"
        for suite in suites
        for policy in policies
        if policy.name not in regrets[suite.name]
    ]
    return f"–: not run: {', '.join(listed)}; its score is the mean over its other suites." if listed else ""


def _horizon(suite: Suite, frames: Frames) -> int:
    prefix = f"{suite.name}/"
    return next(int(frames[job]["round"].max()) for job in frames if job.startswith(prefix))


def _regrets(suite: Suite, frames: Frames) -> dict[str, NDArray[np.float64]]:
    prefix = f"{suite.name}/"
    results = {
        job.removeprefix(prefix): final_regret(frame)
        for job, frame in frames.items()
        if job.startswith(prefix) and not job.removeprefix(prefix).startswith(TIMING_PREFIX)
    }
    return better_variant(results)


def _steep_shares(suites: Sequence[Suite], names: Sequence[str], frames: Frames) -> dict[str, float | None]:
    """Return the mean share of steep runs over the suites where it is known, by policy."""
    shares: dict[str, list[float]] = {name: [] for name in names}
    for suite in suites:
        limit = suite_least_slope(suite, _horizon(suite, frames))
        for name in names:
            frame = frames.get(f"{suite.name}/{name}")
            share = None if frame is None else steep_share(*curve(frame), limit)
            if share is not None:
                shares[name].append(share)
    return {name: float(np.mean(found)) if found else None for name, found in shares.items()}


def _microseconds_per_round(suites: Sequence[Suite], name: str, frames: Frames) -> float:
    """Return the time of a round in microseconds, the median over suites."""
    jobs = [f"{suite.name}/{TIMING_PREFIX}{name}" for suite in suites]
    return float(np.median([microseconds_per_round(frames[job]) for job in jobs if job in frames]))


def _count_violated_suites(
    suites: Sequence[Suite], policies: Sequence[ComparedPolicy], frames: Frames
) -> dict[str, int]:
    """Return the number of suites that violate an assumption of each policy."""
    counts = {policy.name: 0 for policy in policies}
    for suite in suites:
        for label, violated in violations_by_policy(suite, policies, _horizon(suite, frames)).items():
            if label in counts:
                counts[label] += bool(violated)
    return counts


def _findings(
    scores_without: Sequence[Score],
    all_scores: Sequence[Score],
    knowledge: Mapping[str, PositionKnowledge],
) -> str:
    first = [score for score in all_scores if score.policy != RANDOM_POLICY]
    if not first:
        return "Only random rankings took part, which are a reference."
    leader = first[0]
    text = f"{leader.policy} ({_describe(knowledge[leader.policy])}) has the best score, {leader.average:.2f}"
    learners = [score for score in scores_without if score.policy != RANDOM_POLICY]
    if not learners:
        others = " but random rankings" if scores_without else ""
        return f"{text}. No policy without position knowledge took part{others}."
    best = learners[0]
    return (
        f"{text}. Of the policies without position knowledge the best is {best.policy}: its regret is "
        f"{best.average:.2f} times the lowest of them on average, and at most "
        f"{best.ratios[best.worst_suite]:.2f} times, in {best.worst_suite}; {best.slow_share:.1%} of its "
        "runs are slow."
    )


def _describe(knowledge: PositionKnowledge) -> str:
    return "no position knowledge" if knowledge == "nothing" else knowledge


def _checks(
    scores_without: Sequence[Score],
    all_scores: Sequence[Score],
    knowledge: Mapping[str, PositionKnowledge],
    built_in: Sequence[str],
) -> list[Check]:
    """Return the checks of the default policy among built-in ones, none if it did not take part."""
    own = next((score for score in scores_without if score.policy == DEFAULT_POLICY), None)
    others = [name for name in built_in if name not in (DEFAULT_POLICY, RANDOM_POLICY)]
    rivals = [score for score in scores_without if score.policy in others]
    if own is None or not rivals:
        return []
    checks = [
        Check(
            f"{DEFAULT_POLICY}, the default policy, has the best score of the built-in policies without "
            "position knowledge.",
            own.average <= rivals[0].average,
            f"{own.average:.2f}, and the best of the others, {rivals[0].policy}, {rivals[0].average:.2f}",
            claimed_by="implementation",
        ),
        Check(
            f"{DEFAULT_POLICY} has a score of at most {MAX_SCORE} among policies without position knowledge, "
            f"and no ratio above {MAX_RATIO:g}.",
            own.average <= MAX_SCORE and own.ratios[own.worst_suite] <= MAX_RATIO,
            f"score {own.average:.2f}, and at most {own.ratios[own.worst_suite]:.2f}, in {own.worst_suite}",
            claimed_by="implementation",
        ),
    ]
    informed = [
        score for score in all_scores if score.policy in others and knowledge[score.policy] != "nothing"
    ]
    if informed:
        best = informed[0]
        average = {score.policy: score.average for score in all_scores}[DEFAULT_POLICY]
        checks.append(
            Check(
                f"{DEFAULT_POLICY} has at most {MAX_SCORE_RATIO} times the score of the best built-in policy "
                "with position knowledge.",
                average <= MAX_SCORE_RATIO * best.average,
                f"{average:.2f} against {best.average:.2f} of {best.policy} "
                f"({_describe(knowledge[best.policy])}): {average / best.average:.2f} times",
                claimed_by="implementation",
            )
        )
    return checks


def _table(
    caption: str,
    found: Sequence[Score],
    steep_shares: Mapping[str, float | None],
    costs: Mapping[str, float],
    violated: Mapping[str, int],
    knowledge: Mapping[str, PositionKnowledge],
) -> Table:
    rows = [
        [
            score.policy,
            knowledge[score.policy],
            f"{score.average:,.2f}",
            f"{score.average_tail:,.2f}",
            f"{score.slow_share:.1%}",
            format_share(steep_shares[score.policy]),
            f"{max(score.ratios.values()):,.2f}",
            score.worst_suite,
            f"{costs[score.policy]:,.1f}",
            f"{violated[score.policy]} of {len(score.ratios)}",
        ]
        for score in found
    ]
    columns = [
        "policy",
        "position knowledge",
        "score",
        "95% score",
        "slow runs",
        "steep runs",
        "worst ratio",
        "in suite",
        "µs per round",
        "suites that violate an assumption",
    ]
    return Table(caption, columns, rows)


def _means_table(suites: Sequence[Suite], found: Sequence[Score], regrets: Regrets, absences: str) -> Table:
    rows = [
        [score.policy, *(_mean(regrets[suite.name], score.policy) for suite in suites)] for score in found
    ]
    return Table("Mean regret by suite", ["policy", *(suite.name for suite in suites)], rows, absences)


def _mean(by_policy: Mapping[str, NDArray[np.float64]], name: str) -> str:
    return f"{np.mean(by_policy[name]):,.0f}" if name in by_policy else "–"


def _figure(
    suites: Sequence[Suite],
    found: Sequence[Score],
    knowledge: Mapping[str, PositionKnowledge],
    absences: str,
) -> ReportFigure:
    def draw(figure: "Figure") -> None:
        draw_heat_map(
            figure,
            [f"{score.policy} · {_SHORT_KNOWLEDGE[knowledge[score.policy]]}" for score in found],
            [suite.name for suite in suites],
            np.array([[score.ratios.get(suite.name, np.nan) for suite in suites] for score in found]),
        )

    caption = (
        "Ratio of mean regret to the lowest of all policies, by suite: 1 is the best, darker is worse. "
        "After a policy's name is its position knowledge; the best score is at the top."
        + (f" {absences}" if absences else "")
    )
    height = 1.6 + 0.3 * len(found)
    return ReportFigure("ratios", caption, draw, width=max(6.5, 3.4 + 0.6 * len(suites)), height=height)


def draw_heat_map(
    figure: "Figure", rows: Sequence[str], columns: Sequence[str], ratios: NDArray[np.float64]
) -> None:
    """Draw ratios of at least 1 on a logarithmic colour scale.

    Parameters
    ----------
    figure
        Empty figure to draw on.
    rows, columns
        Labels.
    ratios
        Shape (rows, columns); NaN, drawn as a dash, for a policy that is missing in a suite.
    """
    axes = figure.subplots()
    shades = np.clip(np.log(np.maximum(ratios, 1.0)) / np.log(MAX_COLOUR_RATIO), 0.0, 1.0)
    axes.imshow(shades, cmap="YlGnBu", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_facecolor("0.7")  # of missing cells, unlike the shades in both themes
    for (row, column), ratio in np.ndenumerate(ratios):
        is_missing = bool(np.isnan(ratio))
        is_dark = not is_missing and shades[row, column] > _MIN_DARK_SHADE
        text = "–" if is_missing else format_ratio(float(ratio))
        colour = "white" if is_dark else "black"
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="left", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def format_ratio(ratio: float) -> str:
    """Return a ratio in about four characters.

    Examples
    --------
    >>> [format_ratio(ratio) for ratio in (1.0, 1.257, 12.34, 123.4, 12_345.6)]
    ['1', '1.26', '12.3', '123', '12k']
    """
    if ratio >= 10_000:
        return f"{ratio / 1000:.0f}k"
    return f"{ratio:.3g}"
