"""Off-policy evaluation: what other rankings would have earned, from the cube of a log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer, check_number
from banditrank.counts._click_cube import N_FOLDS, ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.evaluation._cells import effective_visits, unsupported_cells, value_by_cells
from banditrank.evaluation._collective_value import collective_value
from banditrank.evaluation._direct import value_by_model
from banditrank.evaluation._evaluation import Evaluation, TargetEvaluation, ValueEstimate, ValueEstimator
from banditrank.evaluation._gamma_interval import gamma_intervals
from banditrank.evaluation._inverse_propensity import clipped_share, value_by_ips, value_by_snips
from banditrank.evaluation._learned_choice import changes_of_groups, values_of_cells
from banditrank.evaluation._learned_targets import BestTarget, LearnedTarget, PolicyTarget
from banditrank.evaluation._log_cells import LogCells, log_cells, sum_by
from banditrank.evaluation._log_model import LogModelFit, fit_log_model, fit_without_group
from banditrank.evaluation._model_choice import EvaluationModelChoice, choose_model
from banditrank.evaluation._price_of_equality import EstimatedPriceOfEquality, jackknife_price
from banditrank.evaluation._targets import (
    CurrentTarget,
    EvaluationTarget,
    Mixture,
    Names,
    ResolvedTarget,
    TargetRankings,
    describe_cells,
    fixed_target,
    load_rankings,
    logged_rankings,
)
from banditrank.evaluation._type_values import TypeValues
from banditrank.evaluation._visit_clusters import (
    ReturningUsers,
    VisitSample,
    assess_returning_users,
    sample_visits,
)
from banditrank.policies._base import Policy, Treatment, check_treatment, is_equal, policy_label
from banditrank.policies._catalog import POLICY_NAMES, make_policy
from banditrank.utilities._utility import UTILITARIAN, Utility, as_utility

Floats = NDArray[np.float64]

MIN_LEVEL, MAX_LEVEL = 0.5, 0.9999
DEFAULT_TARGETS = ("current", "personalized", "equal")


class _Evaluated(NamedTuple):
    """What a target shows, and its values by the click model, from which prices are computed."""

    target: ResolvedTarget
    by_model: TypeValues


class _Setting(NamedTuple):
    """What all targets of an evaluation share."""

    names: Names
    log: LogCells  # in groups of folds
    cells: LogCells  # in groups of folds, summed over the last click above
    merged: LogCells  # in one group, summed over the last click above
    observed: TypeValues | None  # of the logging policy; None without visits
    logged: TargetRankings | None  # of the logging policy; None without lists of whole visits
    visits: VisitSample | None  # None without lists
    users: ReturningUsers
    choice: EvaluationModelChoice
    fit: LogModelFit
    training_fits: list[LogModelFit]  # without each group, for learned targets
    cell_values: Floats | None  # by the model and by cells, (2, G, N, M, K), for learned targets
    utility: Utility
    level: float
    clip: float


def evaluate(
    cube: ClickCube,
    targets: Mapping[str, Any] | Sequence[Any] = DEFAULT_TARGETS,
    *,
    utility: Utility | str = UTILITARIAN,
    treatment: Treatment = "personalized",
    click_model: str = "auto",
    level: float = 0.95,
    clip: float | None = None,
    n_folds: int = 10,
    n_samples: int = 20,
    seed: int = 0,
) -> Evaluation:
    """Estimate what targets would have earned, in clicks per visit, from a log of another policy.

    The time depends on the size of the cube, not on the number of rows of the log.

    Parameters
    ----------
    cube
        Counts of the log.
    targets
        What to evaluate, by name or in a list:

        * ``current``: the logging policy;
        * ``personalized``, ``equal`` or ``equal:UTILITY``: the best rankings of a model fitted to the log;
        * the name of a policy or a `Policy`, with the counts of the log;
        * a ranking for all user types, as names or indices of items;
        * a mapping from user types to rankings;
        * a list of pairs of a probability and one of the last two;
        * the path of a JSON or CSV file with rankings (`load_rankings`).

        What is learned from the log is evaluated by cross-fitting: learned from all but one group of folds,
        and evaluated on that group.
    utility
        Collective utility to report, and that ``equal`` and policies of equal treatment maximise.
    treatment
        Treatment of policies that are given by name.
    click_model
        Model of the direct method: ``single-look``, ``position-based`` or ``user-browsing``; chosen by
        held-out marginal likelihood by default.
    level
        Confidence level of the intervals.
    clip
        Maximum importance weight of ``ips`` and ``snips``; unlimited by default.
    n_folds
        Number of groups of folds for cross-fitting. With less than three, intervals leave out that the choice
        of learned rankings depends on the log.
    n_samples
        Number of rankings to sample from a policy that explores at random.
    seed
        Seed of these policies, and of the split of displays whose fold is unknown.

    Returns
    -------
    Evaluation
        For each target the values by cells, IPS, SNIPS and the click model, and which of them to report:
        those of the model, unless it does not fit. A value that the log does not identify is NaN, and cells
        that were never shown are named.

    Raises
    ------
    InvalidInputError
        If an argument is not valid, or the log is empty or has too many cells.
    UnknownNameError
        If there is no such target, utility, click model, user type or item.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)[:, :2]  # random rankings of two of three items
    >>> chances = np.array([0.1, 0.3, 0.2])[items] * [1.0, 0.5]
    >>> cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random(items.shape) < chances)
    >>> evaluation = evaluate(cube, {"new": ["item-2", "item-3"], "current": "current"})
    >>> value, low, high = evaluation["new"].value
    >>> evaluation["new"].headline, low < 0.3 + 0.2 / 2 < high
    ('model', True)
    >>> evaluation["current"].value.value < value
    True
    """
    if not isinstance(cube, ClickCube):
        raise InvalidInputError("cube", "must be a ClickCube", cube)
    if not cube.cells.displays.any():
        raise InvalidInputError("cube", "must have displays", "an empty cube")
    cube.check_analysed()
    level = check_number("level", level, MIN_LEVEL, MAX_LEVEL)
    n_folds = check_integer("n_folds", n_folds, 2, N_FOLDS)
    n_samples = check_integer("n_samples", n_samples, 1, 10_000)
    seed = check_integer("seed", seed, 0)
    weight = np.inf if clip is None else check_number("clip", clip, 0.0, 1e300)
    chosen_utility = as_utility(utility)
    check_treatment(treatment)
    log = log_cells(cube, n_groups=n_folds, seed=seed)
    cells = log.without_above()
    merged = cells.merged().without_above()
    choice, fit = choose_model(cube, log, click_model)
    names = Names(cube.user_types, cube.items, cube.n_positions)
    policy_options = {"treatment": treatment, "utility": chosen_utility, "click_model": _policy_model(choice)}
    parsed = _as_targets(targets, names, policy_options, n_samples, seed)
    training_fits, cell_values = [], None
    if any(target.is_learned for target in parsed):
        training_fits = _training_fits(fit, log)
        cell_values = _cell_values(fit, training_fits, cells)
    setting = _Setting(
        names=names,
        log=log,
        cells=cells,
        merged=merged,
        observed=_observed(cube, merged),
        logged=logged_rankings(cube) if any(isinstance(one, CurrentTarget) for one in parsed) else None,
        visits=sample_visits(cube, n_groups=n_folds, seed=seed),
        users=assess_returning_users(cube, level),
        choice=choice,
        fit=fit,
        training_fits=training_fits,
        cell_values=cell_values,
        utility=chosen_utility,
        level=level,
        clip=weight,
    )
    results = [_evaluate_target(target, setting) for target in parsed]
    return Evaluation(
        targets=tuple(result for result, _ in results),
        user_types=names.user_types,
        level=level,
        utility=chosen_utility.name,
        model=choice,
        propensities="logged" if log.has_logged_propensities else "estimated",
        n_visits=merged.n_visits,
        n_folds=n_folds,
        prices=_prices(parsed, results, setting),
        given_names=_given_names(targets, parsed),
    )


def _given_names(targets: object, parsed: Sequence[EvaluationTarget]) -> dict[str, str]:
    """Return the name of each target that was given as text, by that text."""
    if isinstance(targets, str | Path):
        targets = [targets]
    if not isinstance(targets, Sequence):
        return {}
    texts = zip(targets, parsed, strict=True)
    return {str(given): target.name for given, target in texts if isinstance(given, str | Path)}


def _as_targets(
    targets: Mapping[str, Any] | Sequence[Any],
    names: Names,
    policy_options: dict[str, Any],
    n_samples: int,
    seed: int,
) -> list[EvaluationTarget]:
    if isinstance(targets, str | Path | Policy):
        targets = [targets]
    pairs = list(targets.items()) if isinstance(targets, Mapping) else [(None, one) for one in targets]
    if not pairs:
        raise InvalidInputError("targets", "must hold at least one target", targets)
    if isinstance(targets, Mapping) and all(name in names.user_types for name in targets):
        return [fixed_target(targets, names)]  # a ranking for each user type
    parsed = [_as_target(value, name, names, policy_options, n_samples, seed) for name, value in pairs]
    labels = [target.name for target in parsed]
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInputError("targets", "must have different names", label)
    return parsed


def _as_target(  # noqa: PLR0911 - one for each kind of target
    value: Any, name: str | None, names: Names, policy_options: dict[str, Any], n_samples: int, seed: int
) -> EvaluationTarget:
    if isinstance(value, EvaluationTarget):
        return value
    if isinstance(value, Policy):
        return PolicyTarget(name or policy_label(value.describe()), value, n_samples, seed)
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).suffix in (".json", ".csv")):
        return fixed_target(load_rankings(value), names, name=name or Path(value).stem)
    if not isinstance(value, str):
        return fixed_target(value, names, name=name)
    kind, _, parameter = value.partition(":")
    if value == "current":
        return CurrentTarget(name or value)
    if value == "personalized":
        return BestTarget(name or value, "personalized", UTILITARIAN)
    if kind == "equal":
        utility = _utility_of(value, parameter) if parameter else policy_options["utility"]
        return BestTarget(name or f"equal:{utility.name}", "equal", utility)
    if value in POLICY_NAMES:
        # Under personalized treatment the utility is that of other targets.
        utility = policy_options["utility"] if is_equal(policy_options["treatment"]) else UTILITARIAN
        policy = make_policy(value, **{**policy_options, "utility": utility})
        return PolicyTarget(name or policy_label(policy.describe()), policy, n_samples, seed)
    raise UnknownNameError("target", value, ("current", "personalized", "equal", "equal:nash", *POLICY_NAMES))


def _utility_of(target: str, name: str) -> Utility:
    """Return the utility of a target such as ``equal:nash``; errors name the target."""
    try:
        return as_utility(name)
    except UnknownNameError as error:
        raise UnknownNameError("target", target, [f"equal:{known}" for known in error.known]) from None
    except InvalidInputError as error:
        raise InvalidInputError("target", f"must be valid: {error.field} {error.rule}", target) from None


def _training_fits(fit: LogModelFit, log: LogCells) -> list[LogModelFit]:
    """Return the fits of the model of a whole log without each of its groups."""
    return [fit_without_group(fit, log, group).shrunken() for group in range(len(log.visits))]


def _cell_values(fit: LogModelFit, training_fits: list[LogModelFit], cells: LogCells) -> Floats:
    """Return the values of cells by group; those of browsing users by the model that they are ranked by."""
    if fit.model == "user-browsing":
        fit = fit_log_model(cells, "position-based")
        training_fits = _training_fits(fit, cells)
    return values_of_cells(fit, training_fits, cells)


def _policy_model(choice: EvaluationModelChoice) -> str:
    return "single-look" if choice.model == "single-look" else "position-based"


def _observed(cube: ClickCube, merged: LogCells) -> TypeValues | None:
    """Return the clicks per visit of the log, with the variance between visits.

    None without visits, or if some of their clicks are on items or positions that are left out.
    """
    if not cube.has_all_clicks:
        return None
    visits, n = cube.visits, merged.shape[0]
    total = np.maximum(merged.n_visits, 1e-300)
    values, squares = (
        sum_by(visits.user_type, visits.visits * visits.n_clicks.astype(np.float64) ** power, n) / total
        for power in (1, 2)
    )
    return TypeValues(values, np.maximum(squares - values**2, 0.0) / total, 1.0 / total)


def _evaluate_target(target: EvaluationTarget, setting: _Setting) -> tuple[TargetEvaluation, _Evaluated]:
    log = setting.cells if target.is_learned else setting.merged
    resolved = target.resolve(log, setting.choice.model)
    is_current = isinstance(target, CurrentTarget)
    if is_current:
        resolved = resolved._replace(rankings=setting.logged)
    shares = resolved.shares
    by_cells = value_by_cells(log, shares, setting.visits)
    by_estimator: dict[ValueEstimator, TypeValues] = {
        "cells": setting.observed if is_current and setting.observed is not None else by_cells,
        "ips": value_by_ips(log, shares, setting.clip, setting.visits),
        "snips": value_by_snips(log, shares, setting.clip, setting.visits),
        "model": (
            value_by_model(setting.fit, setting.log, resolved, setting.training_fits, setting.visits)
            if target.is_learned
            else value_by_model(setting.fit, log, resolved, visits=setting.visits)
        ),
    }
    if isinstance(target, LearnedTarget) and setting.cell_values is not None:
        model = setting.choice.model
        changes = changes_of_groups(target, shares, log, model, setting.cell_values, setting.level)
        for name, values in by_estimator.items():
            by_estimator[name] = values._replace(changes=changes[0 if name == "model" else 1])
    estimates = {name: _estimate(name, values, setting) for name, values in by_estimator.items()}
    missing = unsupported_cells(log, shares)
    headline, reason = _headline(estimates, setting, is_current=is_current)
    if headline is None and missing:
        reason = f"{reason}: {describe_cells(missing, setting.names)}"
    result = TargetEvaluation(
        name=target.name,
        estimates=estimates,
        headline=headline,
        reason=reason,
        is_cross_fitted=target.is_learned,
        unsupported=tuple(
            (setting.names.user_types[i], setting.names.items[j], k + 1) for i, j, k in missing
        ),
        effective_visits=effective_visits(log, shares),
        clipped_share=0.0 if np.isinf(setting.clip) else clipped_share(log, shares, setting.clip),
        rankings=_rankings(target, resolved, setting),
    )
    return result, _Evaluated(resolved, by_estimator["model"])


def _estimate(name: ValueEstimator, values: TypeValues, setting: _Setting) -> ValueEstimate:
    visits, dispersion = setting.merged.n_visits, setting.users.arrival_dispersion
    values = values._replace(variances=values.variances + values.values**2 * setting.users.variances)
    ends = gamma_intervals(values.values, values.total_variances, values.largest_weights, setting.level)
    return ValueEstimate(
        estimator=name,
        values=values.values,
        intervals=ends,
        total=collective_value(values, ends, visits, UTILITARIAN, setting.level, dispersion),
        utility=collective_value(values, ends, visits, setting.utility, setting.level, dispersion),
        reason=values.reason,
    )


def _headline(
    estimates: Mapping[ValueEstimator, ValueEstimate], setting: _Setting, *, is_current: bool
) -> tuple[ValueEstimator | None, str]:
    cells, model = estimates["cells"], estimates["model"]
    if is_current:
        return "cells", "the clicks of the log itself"
    if model.total.is_identified and not setting.choice.is_misfit:
        return "model", f"the click model {setting.choice.describe()} fits the log"
    why = "the click model does not fit the log" if setting.choice.is_misfit else model.reason
    if cells.total.is_identified:
        return "cells", why
    return None, f"{why}, and {cells.reason}"


def _rankings(
    target: EvaluationTarget, resolved: ResolvedTarget, setting: _Setting
) -> tuple[tuple[str, ...], ...]:
    """Return the most probable ranking for each type; of a learned target, as learned from the whole log."""
    n = len(setting.names.user_types)
    mixtures: list[Mixture]
    if isinstance(target, LearnedTarget):
        mixtures = target.learn(setting.merged, setting.choice.model)
    elif resolved.rankings is None or isinstance(target, CurrentTarget):
        return ()
    else:
        rows = resolved.rankings
        mixtures = [
            [(float(rows.weight[b]), rows.items[b]) for b in np.flatnonzero(rows.user_type == i)]
            for i in range(n)
        ]
    best = [max(mixture, key=lambda pair: pair[0])[1] for mixture in mixtures]
    return tuple(tuple(setting.names.items[j] for j in ranking if j >= 0) for ranking in best)


def _prices(
    targets: Sequence[EvaluationTarget],
    results: Sequence[tuple[TargetEvaluation, _Evaluated]],
    setting: _Setting,
) -> tuple[EstimatedPriceOfEquality, ...]:
    """Return the price of each learned equal target against the first learned personalized one."""
    learned = [
        (target, *result)
        for target, result in zip(targets, results, strict=True)
        if isinstance(target, LearnedTarget)
    ]
    personalized = next((one for one in learned if one[0].treatment == "personalized"), None)
    equal = [one for one in learned if is_equal(one[0].treatment)]
    if personalized is None or not equal:
        return ()
    _, reference, reference_resolved = personalized
    prices = []
    for target, result, resolved in equal:
        has_models = result.headline == reference.headline == "model"
        estimator: ValueEstimator = "model" if has_models else "cells"
        without = list(
            zip(
                _totals_without(estimator, resolved.target, resolved.by_model, setting),
                _totals_without(estimator, reference_resolved.target, reference_resolved.by_model, setting),
                strict=True,
            )
        )
        totals = (result.estimates[estimator].total.value, reference.estimates[estimator].total.value)
        prices.append(jackknife_price(target.name, reference.name, estimator, totals, without, setting.level))
    return tuple(prices)


def _totals_without(
    estimator: ValueEstimator, target: ResolvedTarget, values: TypeValues, setting: _Setting
) -> list[float]:
    """Return the clicks per visit of a learned target without each of the groups of folds."""
    log, totals = setting.cells, []
    for group in range(len(log.visits)):
        part = log.without(group)
        if estimator == "model" and values.by_group is not None:
            remaining = (part.group_shares * values.by_group).sum(axis=0)
        else:
            remaining = value_by_cells(part, target.shares).values
        is_present = part.n_visits > 0
        totals.append(float(part.arrival_rates[is_present] @ remaining[is_present]))
    return totals
