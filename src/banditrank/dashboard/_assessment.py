"""Assessment of a surface from its counts: best rankings, their values, and the uncertainty of both."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard._alternatives import find_runner_up
from banditrank.dashboard._estimated_problem import (
    EstimatedSurfaceProblem,
    best_equal_rankings,
    estimated_problem,
    ranking_value,
)
from banditrank.dashboard._estimates_report import EstimatesReport, report_estimates
from banditrank.dashboard._lottery_report import LotteryReport, find_lottery, report_lottery
from banditrank.dashboard._posterior_samples import (
    Interval,
    PosteriorSamples,
    UserTypeSamples,
    quantile_interval,
)
from banditrank.dashboard._probability_best import SampledOptimum, find_sampled_optimum, wilson_interval
from banditrank.engine._counts_replica import SurfaceCounts
from banditrank.model._values import best_personalized_rankings, best_personalized_values
from banditrank.policies._base import Treatment, is_equal
from banditrank.policies._sampled_problem import SampledProblem
from banditrank.solvers._equality import equality_report
from banditrank.solvers._lottery.lottery import Lottery
from banditrank.utilities._utility import NASH, UTILITARIAN, Utility

CONFIDENCE_LEVEL = 0.95
_TOLERANCE = 1e-12
_MIN_VALUE = 1e-6  # of a ranking to a user type: at 0 a utility may be −∞
_MAX_UTILITY = 1e100  # powers with a large α exceed the largest float

Floats = NDArray[np.float64]
Rankings = NDArray[np.intp]

_CERTAIN, _NO_LOSS = Interval(1.0, 1.0, 1.0), Interval(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class TreatmentValue:
    """Value of a treatment for each user type.

    Attributes
    ----------
    treatment, utility
        The treatment; the utility is None under personalized treatment.
    rankings
        The best rankings of the active items, shape (N, K); all rows are equal under equal treatment. Those
        of the lottery, shape (S, K), if there is one.
    values
        Clicks per visit of each user type.
    price
        Price of equality: the share of the personalized total that the treatment loses. None for
        personalized treatment, and if the personalized total is 0.
    probabilities
        Probabilities of the lottery's rankings, shape (S,); None without a lottery.
    """

    treatment: Treatment
    utility: str | None
    rankings: Rankings
    values: list[Interval]
    price: Interval | None
    probabilities: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RunnerUp:
    """The second-best ranking.

    Attributes
    ----------
    ranking
        Shape (K,).
    difference
        Its value less that of the best ranking: the collective utility under equal treatment, clicks per
        visit otherwise.
    difference_by_user_type
        The same in clicks per visit for each user type; a single one under personalized treatment.
    """

    ranking: Rankings
    difference: Interval
    difference_by_user_type: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class AssessedRanking:
    """The best ranking for a user type, or for all of them.

    Attributes
    ----------
    ranking
        Shape (K,).
    probability_best
        Probability that no other ranking is better, with the interval that the number of posterior samples
        allows; None if it takes too long to compute.
    loss
        Clicks per visit that the ranking loses against the best one, whichever that is: the expected loss,
        and the interval of the loss. Under equal treatment it is the difference of `equivalent_values`.
        None if `probability_best` is.
    runner_up
        None if there is no other ranking.
    """

    ranking: Rankings
    probability_best: Interval | None
    loss: Interval | None
    runner_up: RunnerUp | None


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """Assessment of a surface from the counts of one version.

    Attributes
    ----------
    surface_counts
        The counts.
    estimates
        Estimates of position preferences and item means, with intervals.
    problem
        The estimated problem, with the active items.
    treatments
        Personalized; equal with the utilitarian utility; equal with the surface's own utility, or Nash's
        if that is the utilitarian one; and equal by the best lottery, if that is the surface's treatment.
    current_treatment
        Index of the surface's own treatment in `treatments`.
    best_rankings
        One for each user type, or one for all under equal treatment. Those of the lottery, the most probable
        first, if that is the surface's treatment.
    optimal_values
        Value of the optimal ranking, whichever it is, to each user type.
    is_optimum_exact
        Whether the intervals of `optimal_values` are of the optimum of each posterior sample. Otherwise that
        takes too long to compute, and they are of the best ranking or lottery by the estimates.
    lottery
        The best lottery under equal treatment, or those of the user types under personalized treatment with
        guarantees; None for utilities by which no lottery can gain.
    """

    surface_counts: SurfaceCounts
    estimates: EstimatesReport
    problem: EstimatedSurfaceProblem
    treatments: list[TreatmentValue]
    current_treatment: int
    best_rankings: list[AssessedRanking]
    optimal_values: list[Interval]
    is_optimum_exact: bool
    lottery: LotteryReport | None


def assess(surface_counts: SurfaceCounts) -> Assessment:
    """Return the assessment of a surface; it is a function of the counts."""
    surface, counts = surface_counts.surface, surface_counts.counts
    problem = estimated_problem(surface, counts)
    for_all = is_equal(surface.treatment)
    utility = surface.compiled_policy.utility if for_all else UTILITARIAN
    other_utility = NASH if utility == UTILITARIAN else utility
    rankings = [
        best_personalized_rankings(problem),
        best_equal_rankings(problem, UTILITARIAN),
        best_equal_rankings(problem, other_utility),
    ]
    own = 1 if utility == UTILITARIAN else 2  # the fixed ranking by the surface's utility
    current = own if for_all else 0
    found = find_lottery(surface, problem, utility) if for_all or surface.guarantees else None
    is_served = surface.treatment == "equal-lottery"
    samples = PosteriorSamples(
        counts.select_items(surface.active_numbers),
        seed=surface_counts.version,
        click_model=surface.click_model,
    )
    values = np.empty((len(rankings), samples.n_samples, problem.n_user_types))  # of each treatment
    personal_optima = np.empty(values.shape[1:])  # (S, N): value of each user type's own best ranking
    assessed = []
    for i in range(problem.n_user_types):
        of_user_type = samples.of_user_type(i)
        personal_optima[:, i] = of_user_type.optimal_values()
        for index, best in enumerate(rankings):
            values[index, :, i] = of_user_type.values(best[i])
        if current == 0:
            assessed.append(
                _assess_personalized(
                    problem, i, rankings[0][i], of_user_type, values[0, :, i], personal_optima[:, i]
                )
            )
    optima: Floats | None = personal_optima
    if is_served or (found is not None and not for_all):
        optima = None  # the best lottery of every sample takes too long
    elif current > 0:
        ranking = rankings[current][0]
        optimum = find_sampled_optimum(samples, ranking, utility)
        optima = None if optimum is None else optimum.values
        assessed.append(_assess_equal(problem, samples, ranking, utility, values[current], optimum))
    treatments = [
        _treatment_value(problem, name, best, values[index], personal_optima, samples.arrival_rates)
        for index, (name, best) in enumerate(
            zip((None, UTILITARIAN.name, str(other_utility)), rankings, strict=True)
        )
    ]
    if found is not None and is_served:
        current = len(treatments)
        treatments.append(_lottery_value(problem, samples, found.lottery, str(utility), personal_optima))
        assessed = [AssessedRanking(ranking, None, None, None) for ranking in found.lottery.rankings]
    optimal_values = treatments[current].values
    if found is not None and not for_all:  # the rankings of `treatments` do not keep the guarantees
        optimal_values = _lottery_value(problem, samples, found.lottery, str(utility), personal_optima).values
    if optima is not None:
        optimal_values = [
            _credible_interval(value.estimate, optima[:, i]) for i, value in enumerate(optimal_values)
        ]
    lottery = None
    if found is not None:
        fixed_values = ranking_value(problem, rankings[own][0])
        lottery = report_lottery(surface_counts, problem, found, utility, fixed_values)
    return Assessment(
        surface_counts,
        report_estimates(surface_counts, level=CONFIDENCE_LEVEL),
        problem,
        treatments,
        current,
        assessed,
        optimal_values,
        is_optimum_exact=optima is not None,
        lottery=lottery,
    )


def _assess_personalized(
    problem: EstimatedSurfaceProblem,
    user_type: int,
    ranking: Rankings,
    samples: UserTypeSamples,
    values: Floats,  # (S,)
    optima: Floats,  # (S,)
) -> AssessedRanking:
    row = slice(user_type, user_type + 1)
    alone = SampledProblem(np.ones(1), problem.position_preferences[row], problem.item_means[row])
    other = find_runner_up(alone, ranking, UTILITARIAN)
    if other is None:
        return AssessedRanking(ranking, _CERTAIN, _NO_LOSS, None)
    difference = float(ranking_value(alone, other)[0] - ranking_value(alone, ranking)[0])
    runner_up = RunnerUp(other, _credible_interval(difference, samples.values(other) - values), [difference])
    probability_best = wilson_interval(values >= optima - _TOLERANCE, CONFIDENCE_LEVEL)
    return AssessedRanking(ranking, probability_best, _loss(optima - values), runner_up)


def _assess_equal(
    problem: EstimatedSurfaceProblem,
    samples: PosteriorSamples,
    ranking: Rankings,
    utility: Utility,
    values: Floats,  # (S, N)
    optimum: SampledOptimum | None,
) -> AssessedRanking:
    other = find_runner_up(problem, ranking, utility)
    if other is None:
        return AssessedRanking(ranking, _CERTAIN, _NO_LOSS, None)
    before, after = ranking_value(problem, ranking), ranking_value(problem, other)
    difference = float(_utility_difference(utility, problem.arrival_rates, before[None], after[None])[0])
    other_values = np.stack(
        [samples.of_user_type(i).values(other) for i in range(problem.n_user_types)], axis=1
    )  # (S, N)
    differences = _utility_difference(utility, samples.arrival_rates, values, other_values)
    runner_up = RunnerUp(other, _credible_interval(difference, differences), (after - before).tolist())
    if optimum is None:
        return AssessedRanking(ranking, None, None, runner_up)
    probability_best = wilson_interval(optimum.is_optimal, CONFIDENCE_LEVEL)
    return AssessedRanking(ranking, probability_best, _loss(optimum.losses), runner_up)


def _loss(losses: Floats) -> Interval:
    """Return the mean of losses, which are never below 0 but by rounding, and their interval."""
    losses = losses.clip(0.0)
    return _credible_interval(float(losses.mean()), losses)


def _utility_difference(utility: Utility, weights: Floats, before: Floats, after: Floats) -> Floats:
    """Return the increase of the collective utility from values (S, N) to others, shape (S,)."""
    first, second = (
        utility.collectives(weights, values.clip(_MIN_VALUE)).clip(-_MAX_UTILITY, _MAX_UTILITY)
        for values in (before, after)
    )
    return np.asarray(second - first)


def _treatment_value(
    problem: EstimatedSurfaceProblem,
    utility: str | None,
    rankings: Rankings,
    values: Floats,  # (S, N)
    personal_optima: Floats,  # (S, N)
    arrival_rates: Floats,  # (S, N)
) -> TreatmentValue:
    """Return the value of a treatment.

    Its price in a sample is relative to the best personalized rankings of that sample, which may differ from
    those of the estimates.
    """
    intervals = [
        _credible_interval(float(ranking_value(problem, ranking)[i]), values[:, i])
        for i, ranking in enumerate(rankings)
    ]
    if utility is None:
        return TreatmentValue("personalized", None, rankings, intervals, price=None)
    report = equality_report(problem, rankings[0])
    price = None
    if report.personalized_total > 0:
        price = _price(report.price_of_equality, values, personal_optima, arrival_rates)
    return TreatmentValue("equal", utility, rankings, intervals, price)


def _lottery_value(
    problem: EstimatedSurfaceProblem,
    samples: PosteriorSamples,
    lottery: Lottery,
    utility: str,
    personal_optima: Floats,  # (S, N)
) -> TreatmentValue:
    """Return the value of a lottery; its price as in `_treatment_value`."""
    values = np.empty(personal_optima.shape)
    shape = (problem.n_user_types, len(lottery.rankings))
    probabilities = np.broadcast_to(lottery.probabilities, shape)  # one lottery for all, or one for each
    for i in range(problem.n_user_types):
        of_user_type = samples.of_user_type(i)
        of_rankings = np.stack([of_user_type.values(ranking) for ranking in lottery.rankings])
        values[:, i] = probabilities[i] @ of_rankings
    intervals = [
        _credible_interval(value, values[:, i]) for i, value in enumerate(lottery.user_type_values.tolist())
    ]
    total, best = (
        float(problem.arrival_rates @ one)
        for one in (lottery.user_type_values, best_personalized_values(problem))
    )
    price = None
    if best > 0:
        price = _price(max(0.0, 1.0 - total / best), values, personal_optima, samples.arrival_rates)
    return TreatmentValue("equal-lottery", utility, lottery.rankings, intervals, price, lottery.probabilities)


def _price(estimate: float, values: Floats, personal_optima: Floats, arrival_rates: Floats) -> Interval:
    """Return a price of equality with the interval of its samples, shape (S, N) each."""
    personalized_totals = np.maximum((personal_optima * arrival_rates).sum(axis=1), 1e-300)  # (S,)
    prices = (1.0 - (values * arrival_rates).sum(axis=1) / personalized_totals).clip(0.0, 1.0)
    return _credible_interval(estimate, prices)


def _credible_interval(estimate: float, samples: Floats) -> Interval:
    return Interval(estimate, *quantile_interval(samples, CONFIDENCE_LEVEL, including=estimate))
