"""Study of one suite: regret, cost and violated assumptions of each policy."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._compare.jobs import sweep
from banditrank.experiments._compare.names import TIMING_PREFIX
from banditrank.experiments._compare.policy_variants import (
    DEFAULT_POLICY,
    RANDOM_POLICY,
    WINDOW_SUFFIX,
    ComparedPolicy,
    PositionKnowledge,
    policy_variants,
    position_knowledge,
)
from banditrank.experiments._compare.scores import TAIL_QUANTILE, final_regret, slow_share
from banditrank.experiments._compare.suites import Suite
from banditrank.experiments._curves import at_round, curve, draw_curves
from banditrank.experiments._study import Frames, Study, StudyResult
from banditrank.model._click_models import as_click_model
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._rewards import as_rewards
from banditrank.policies._base import CompiledPolicy, Policy
from banditrank.policies._contextual.violated_assumptions import violated_contextual_assumptions
from banditrank.policies._violated_assumptions import violated_assumptions
from banditrank.simulation._steep_runs import MIN_GAP, least_slope, steep_share
from banditrank.simulation._student_t import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_CURVES = 6  # in the figure
COLUMNS = (
    "policy",
    "position knowledge",
    "mean",
    "median",
    "95%",
    "worst run",
    "slow runs",
    "steep runs",
    "slope per ln t",
    "× the best",
    "µs per round",
    "violated assumptions",
)


def make_study(suite: Suite, policies: Sequence[ComparedPolicy]) -> Study:
    """Return the study of a suite for some policies."""
    return Study(
        suite.name,
        suite.title,
        suite.description,
        partial(sweep, suite, policies),
        partial(analyse, suite, policies),
        suite.quick_scale,
        claim_heading="Description",
        has_agreement=False,
    )


def analyse(suite: Suite, policies: Sequence[ComparedPolicy], frames: Frames) -> StudyResult:
    """Return the policies by mean regret, with their costs and violated assumptions."""
    data = {job: frame for job, frame in frames.items() if not job.startswith(TIMING_PREFIX)}
    horizon = int(next(iter(data.values()))["round"].max())
    regrets = {label: final_regret(frame) for label, frame in data.items()}
    means = {label: float(np.mean(values)) for label, values in regrets.items()}
    order = sorted(means, key=lambda label: means[label])
    learners = [label for label in order if label != RANDOM_POLICY] or order
    violated = violations_by_policy(suite, policies, horizon)
    knowledge = position_knowledge(policies)
    costs = {label: microseconds_per_round(frames[f"{TIMING_PREFIX}{label}"]) for label in data}
    best = max(means[learners[0]], 1e-9)
    slopes = {label: log_slope(frame) for label, frame in data.items()}
    limit = suite_least_slope(suite, horizon)
    steep = {label: steep_share(*curve(frame), limit) for label, frame in data.items()}
    rows = [
        [
            label,
            knowledge[label],
            f"{means[label]:,.0f}",
            *(f"{value:,.0f}" for value in np.quantile(regrets[label], (0.5, TAIL_QUANTILE, 1.0))),
            f"{slow_share(regrets[label]):.0%}",
            format_share(steep[label], 0),
            f"{slopes[label][0]:,.0f} ± {slopes[label][2] - slopes[label][0]:,.0f}",
            f"{means[label] / best:,.2f}",
            f"{costs[label]:,.1f}",
            "; ".join(violated[label]) or "none",
        ]
        for label in order
    ]
    metrics = {
        "best_policy": learners[0],
        "horizon": horizon,
        "graves_lai_constant": limit,
        "replications": len(next(iter(regrets.values()))),
        "policies": {
            label: {
                "position_knowledge": knowledge[label],
                "mean_regret": means[label],
                "median_regret": float(np.median(regrets[label])),
                "regret_percentile_95": float(np.quantile(regrets[label], TAIL_QUANTILE)),
                "maximum_regret": float(regrets[label].max()),
                "slow_run_share": slow_share(regrets[label]),
                "steep_run_share": steep[label],
                "slope_per_log_round": list(slopes[label]),
                "ratio_to_best": means[label] / best,
                "microseconds_per_round": costs[label],
                "violated_assumptions": list(violated[label]),
            }
            for label in order
        },
    }
    caption = f"Regret after {horizon:,} rounds, lowest mean first"
    notes = (_absences(suite, policies, horizon), _describe_limit(limit))
    table = Table(caption, COLUMNS, rows, " ".join(note for note in notes if note))
    findings = _findings(means, learners, knowledge)
    return StudyResult(findings, [], [_figure(data, learners)], [table], metrics)


def log_slope(frame: "pd.DataFrame") -> tuple[float, float, float]:
    """Return the slope of mean regret per ln t over the last tenfold of rounds, and its interval."""
    rounds = np.unique(frame["round"].to_numpy())
    first = int(rounds[np.argmin(np.abs(rounds - rounds[-1] / 10))])
    if first == rounds[-1]:
        return 0.0, 0.0, 0.0
    gained = final_regret(frame) - at_round(frame, first)
    return mean_and_interval(gained / np.log(rounds[-1] / first))


def suite_least_slope(suite: Suite, horizon: int) -> float | None:
    """Return the Graves–Lai constant of a suite's problem; None where it is not defined or takes long."""
    return least_slope(
        suite.make_problem(horizon),
        treatment=suite.treatment,
        click_model=str(as_click_model(suite.click_model)),
        rewards=str(as_rewards(suite.rewards)),
        has_guarantees=bool(suite.guarantees),
    )


def format_share(share: float | None, decimals: int = 1) -> str:
    """Return a share in percent, or a dash where it is unknown.

    Examples
    --------
    >>> format_share(0.125), format_share(None)
    ('12.5%', '–')
    """
    return "–" if share is None else f"{share:.{decimals}%}"


def _describe_limit(limit: float | None) -> str:
    if limit is None:
        return ""
    return (
        f"The least slope of consistent policies in the long run is {limit:,.1f} (Graves–Lai constant; "
        f"differences of means below {MIN_GAP:g} are ignored)."
    )


def _absences(suite: Suite, policies: Sequence[ComparedPolicy], horizon: int) -> str:
    """Return which policies did not run in a suite, and why."""
    fitting = [policy for policy in policies if policy.fits(suite)]
    reasons = {policy.name: policy.absence(suite, horizon) for policy in fitting}
    listed = [f"{name} ({reason})" for name, reason in reasons.items() if reason]
    return f"Not run here: {', '.join(listed)}." if listed and len(listed) < len(fitting) else ""


def microseconds_per_round(frame: "pd.DataFrame") -> float:
    """Return the measured time of a round in microseconds."""
    return float(1e6 * frame["seconds"].sum() / frame["rounds"].sum())


def violations_by_policy(
    suite: Suite, policies: Sequence[ComparedPolicy], horizon: int
) -> dict[str, list[str]]:
    """Return the assumptions of each policy variant that a suite violates, by label."""
    problem = suite.make_problem(horizon)
    found = {}
    for variant in policy_variants(suite, policies, horizon):
        policy = variant.make_policy(suite, problem, horizon)
        settings: dict[str, Any] = {"rewards": suite.rewards, "click_model": suite.click_model}
        sentences: tuple[str, ...] = ()
        if isinstance(problem, ContextualProblem):
            if not isinstance(policy, Policy) or isinstance(policy, CompiledPolicy):
                sentences = violated_contextual_assumptions(policy, problem, **settings)
        elif isinstance(policy, Policy):
            sentences = violated_assumptions(policy, problem, **settings)
        found[variant.label] = [each.removeprefix(f"{policy.name} ").removesuffix(".") for each in sentences]
    return found


def _findings(
    means: dict[str, float], learners: list[str], position_knowledge: Mapping[str, PositionKnowledge]
) -> str:
    first = learners[0]
    if first == RANDOM_POLICY:
        return f"Only random rankings took part, with a mean regret of {means[first]:,.0f}."
    knowledge = position_knowledge[first]
    suffix = "" if knowledge == "nothing" else f" ({knowledge})"
    without_knowledge = [label for label in learners if position_knowledge[label] == "nothing"]
    lowest = f"{first}{suffix} has the lowest mean regret, {means[first]:,.0f}"
    if without_knowledge and without_knowledge[0] != first:
        second = without_knowledge[0]
        lowest += f"; of the policies without position knowledge {second} has, {means[second]:,.0f}"
    if RANDOM_POLICY not in means:
        return f"{lowest}. Random rankings did not take part."
    share = means[first] / max(means[RANDOM_POLICY], 1e-9)
    random = f"Random rankings have {means[RANDOM_POLICY]:,.0f}, so the best has {share:.1%} of that"
    return f"{lowest}. {random}."


def _figure(data: Frames, learners: list[str]) -> ReportFigure:
    drawn = learners[:MAX_CURVES]
    others = learners[MAX_CURVES:]
    drawn += [label for label in others if label.removesuffix(WINDOW_SUFFIX) == DEFAULT_POLICY][:1]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_yscale("log")
        draw_curves(axes, {label: data[label] for label in drawn})
        axes.set_ylabel("regret")
        axes.legend(frameon=False, fontsize="small")

    policies = f"the {len(drawn)} policies with the lowest mean regret" if len(drawn) > 1 else drawn[0]
    caption = (
        f"Regret over rounds of {policies}, both axes logarithmic: medians, in bands from the 10% to the 90% "
        "quantile of the replications."
    )
    return ReportFigure("regret", caption, draw, width=8.0, height=4.2)
