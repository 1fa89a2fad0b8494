"""What the counts say of what to show, of its value under each treatment, and of how sure all that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank.dashboard.alternatives import next_best
from banditrank.dashboard.probability_best import BestOfDraws, best_of_draws, share_of
from banditrank.dashboard.estimated_problem import best_equal, estimated_problem
from banditrank.dashboard.estimates_report import EstimatesReport, estimates_of
from banditrank.engine.counts_replica import SurfaceCounts
from banditrank.dashboard.posterior_samples import Interval, PosteriorDraws, interval
from banditrank.model.problem import Problem
from banditrank.model.values import best_personalized_rankings
from banditrank.policies.base import Treatment
from banditrank.policies.sampled_problem import SampledProblem
from banditrank.solvers.equality import equality_report
from banditrank.utilities.utility import NASH, UTILITARIAN, Utility

LEVEL = 0.95
_TIE = 1e-12
_LEAST_VALUE = 1e-6  # of a ranking to a type: a utility may be −∞ at 0
_MOST_UTILITY = 1e100  # told apart: powers with a large α go beyond all numbers

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class TreatmentValue:
    """What a treatment gives each user type.

    Attributes
    ----------
    treatment, utility
        Which; the utility is None under personalized treatment.
    rankings
        Of the items that can be shown, shape (N, K); all rows are the same under equal treatment.
    values
        One for each type.
    price
        The share of the personalized total that is given up; None if there is no total yet.
    """

    treatment: Treatment
    utility: str | None
    rankings: Places
    values: list[Interval]
    price: Interval | None


@dataclass(frozen=True, slots=True, eq=False)
class RunnerUp:
    """The ranking that comes next.

    Attributes
    ----------
    ranking
        Shape (K,).
    delta
        What it is worth more than the best: in the utility under equal treatment, in clicks per visit if not.
    by_type
        The same in clicks per visit for each type; only one under personalized treatment.
    """

    ranking: Places
    delta: Interval
    by_type: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What is best for a user type, or for all of them.

    Attributes
    ----------
    ranking
        Shape (K,).
    p_best
        How probably no other is better, with what the number of draws leaves open; None without telling.
    runner_up
        None if there is no other ranking.
    """

    ranking: Places
    p_best: Interval | None
    runner_up: RunnerUp | None


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What the counts of a moment say.

    Attributes
    ----------
    known
        The counts.
    estimates
        Of positions and items.
    world
        What these estimates say, of the items that can be shown.
    treatments
        Personalized; equal and utilitarian; equal by the surface's own utility, or Nash's.
    own
        Which of them is in force.
    choices
        One for each type, or one for all under equal treatment.
    optimum
        What the best ranking of all is worth to each type, whichever it is.
    optimum_of_all
        Whether it is of all rankings that there are: finding that out may take too long under equal
        treatment. Then it is of the best one that is known.
    """

    known: SurfaceCounts
    estimates: EstimatesReport
    world: Problem
    treatments: list[TreatmentValue]
    own: int
    choices: list[Choice]
    optimum: list[Interval]
    optimum_of_all: bool


def assess(known: SurfaceCounts) -> Assessment:
    """Work out what counts say; the same counts give the same."""
    surface, counts = known.surface, known.counts
    world = estimated_problem(surface, counts)
    own = surface.compiled_policy.utility if surface.treatment == "equal" else UTILITARIAN
    other = NASH if own == UTILITARIAN else own
    own_place = 0 if surface.treatment == "personalized" else 1 if own == UTILITARIAN else 2
    rankings = [best_personalized_rankings(world), best_equal(world, UTILITARIAN), best_equal(world, other)]
    draws = PosteriorDraws(counts.select_items(surface.active_numbers), seed=known.version)
    drawn = np.empty((len(rankings), draws.size, world.n_user_types))  # values in each draw
    best = np.empty(drawn.shape[1:])  # of the ranking that is best in it
    choices = []
    for i in range(world.n_user_types):
        of_type = draws.of_type(i)
        best[:, i] = of_type.best_values()
        for place, chosen in enumerate(rankings):
            drawn[place, :, i] = of_type.values(chosen[i])
        if own_place == 0:
            alone = SampledProblem(np.ones(1), world.position_preferences[i : i + 1], world.item_means[i : i + 1])
            other_one = next_best(alone, rankings[0][i], UTILITARIAN)
            runner_up, p_best = None, Interval(1.0, 1.0, 1.0)
            if other_one is not None:
                delta = _value(alone, other_one)[0] - _value(alone, rankings[0][i])[0]
                deltas = of_type.values(other_one) - drawn[0, :, i]
                runner_up = RunnerUp(other_one, _ends(float(delta), deltas), [float(delta)])
                p_best = share_of(drawn[0, :, i] >= best[:, i] - _TIE, LEVEL)
            choices.append(Choice(rankings[0][i], p_best, runner_up))
    optima: Floats | None = best
    if own_place > 0:
        found = best_of_draws(draws, rankings[own_place][0], own)
        optima = None if found is None else found.values
        choices.append(_choice_for_all(world, draws, rankings[own_place][0], own, drawn[own_place], found))
    names = [None, UTILITARIAN.name, str(other)]
    treatments = [
        _treatment_value(world, name, chosen, drawn[place], best, draws.shares)
        for place, (name, chosen) in enumerate(zip(names, rankings, strict=True))
    ]
    optimum = values = treatments[own_place].values
    if optima is not None:
        optimum = [_ends(value.estimate, optima[:, i]) for i, value in enumerate(values)]
    estimates = estimates_of(known, level=LEVEL)
    return Assessment(
        known, estimates, world, treatments, own_place, choices, optimum, optimum_of_all=optima is not None
    )


def _value(world: Problem | SampledProblem, ranking: Places) -> Floats:
    return np.asarray((world.position_preferences * world.item_means[:, ranking]).sum(axis=1))


def _choice_for_all(
    world: Problem,
    draws: PosteriorDraws,
    ranking: Places,
    utility: Utility,
    drawn: Floats,
    found: BestOfDraws | None,
) -> Choice:
    other = next_best(world, ranking, utility)
    if other is None:
        return Choice(ranking, Interval(1.0, 1.0, 1.0), None)
    ours, theirs = _value(world, ranking), _value(world, other)
    delta = utility_gained(utility, world.arrival_rates, ours[None], theirs[None])[0]
    others = np.stack([draws.of_type(i).values(other) for i in range(world.n_user_types)], axis=1)  # (D, N)
    deltas = utility_gained(utility, draws.shares, drawn, others)
    runner_up = RunnerUp(other, _ends(float(delta), deltas), (theirs - ours).tolist())
    return Choice(ranking, None if found is None else share_of(found.wins, LEVEL), runner_up)


def utility_gained(utility: Utility, weights: Floats, before: Floats, after: Floats) -> Floats:
    """Return by how much rows of values, shape (D, N), are worth more than others for all types together."""
    totals = [utility.collectives(weights, values.clip(_LEAST_VALUE)) for values in (before, after)]
    bounded = [total.clip(-_MOST_UTILITY, _MOST_UTILITY) for total in totals]
    return np.asarray(bounded[1] - bounded[0])


def _treatment_value(
    world: Problem, utility: str | None, rankings: Places, drawn: Floats, best: Floats, shares: Floats
) -> TreatmentValue:
    """Return what a treatment gives.

    In each draw its price is set against what is best for each type in that draw: also rankings that look
    best for each type now may turn out not to be.
    """
    values = [_ends(float(_value(world, ranking)[i]), drawn[:, i]) for i, ranking in enumerate(rankings)]
    price = None
    if utility is None:
        return TreatmentValue("personalized", None, rankings, values, price)
    report = equality_report(world, rankings[0])
    if report.personalized_total > 0:
        most = np.maximum((best * shares).sum(axis=1), 1e-300)  # (D,)
        lost = (1.0 - (drawn * shares).sum(axis=1) / most).clip(0.0, 1.0)
        price = _ends(report.price_of_equality, lost)
    return TreatmentValue("equal", utility, rankings, values, price)


def _ends(estimate: float, draws: Floats) -> Interval:
    return Interval(estimate, *interval(draws, LEVEL, holding=estimate))
