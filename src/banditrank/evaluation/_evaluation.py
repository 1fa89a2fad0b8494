"""Results of off-policy evaluation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from banditrank._frames import Columns, Tabular
from banditrank._text import shorten
from banditrank.errors import UnknownNameError
from banditrank.evaluation._collective_value import NOT_IDENTIFIED, ValueInterval
from banditrank.evaluation._model_choice import EvaluationModelChoice
from banditrank.evaluation._price_of_equality import EstimatedPriceOfEquality

Floats = NDArray[np.float64]

ValueEstimator: TypeAlias = Literal["cells", "ips", "snips", "model"]
"""Estimators of the value of a target."""

TOTAL = "all visits"
"""Name of the value of all visits in frames and texts."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueEstimate:
    """Value of a target by one estimator: clicks per visit.

    Attributes
    ----------
    estimator
        Name of the estimator.
    values
        Value to each user type, shape (N,); NaN where it is not identified.
    intervals
        Confidence intervals, shape (N, 2).
    total
        Value over all visits, with its interval.
    utility
        Collective utility of the values to the types, with its interval.
    reason
        Why values are not identified; empty if all are.
    """

    estimator: ValueEstimator
    values: Floats
    intervals: Floats
    total: ValueInterval
    utility: ValueInterval
    reason: str = ""

    @property
    def is_identified(self) -> NDArray[np.bool_]:
        """Whether the log identifies the value to each type, shape (N,)."""
        return np.isfinite(self.values)

    def to_dict(self, user_types: tuple[str, ...]) -> dict[str, Any]:
        """Return the estimate as JSON-compatible values; null for what is not identified."""
        by_type = zip(user_types, self.values, self.intervals, strict=True)
        return {
            "estimator": self.estimator,
            "user_types": {name: _as_json(value, *ends) for name, value, ends in by_type},
            "total": _as_json(*self.total),
            "utility": _as_json(*self.utility),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, eq=False)
class TargetEvaluation:
    """Values of one target by all estimators.

    Attributes
    ----------
    name
        Name of the target.
    estimates
        Values by estimator.
    headline
        Estimator whose values to report; None if none identifies the value of all visits.
    reason
        Why this estimator.
    is_cross_fitted
        Whether the target was learned from the log, on other folds than it is evaluated on.
    unsupported
        Cells of the target that were not shown where it is evaluated: names of user type and item, and the
        position from 1.
    effective_visits
        Effective sample size of each user type, shape (N,).
    clipped_share
        Share of the target's displays whose importance weight was clipped.
    rankings
        For each user type, the most probable ranking, by names; for a learned target that learned from the
        whole log. Empty for the logging policy.
    """

    name: str
    estimates: Mapping[ValueEstimator, ValueEstimate]
    headline: ValueEstimator | None
    reason: str
    is_cross_fitted: bool
    unsupported: tuple[tuple[str, str, int], ...]
    effective_visits: Floats
    clipped_share: float
    rankings: tuple[tuple[str, ...], ...]

    @property
    def value(self) -> ValueInterval:
        """Clicks per visit over all visits by the headline estimator; NaN if not identified."""
        return NOT_IDENTIFIED if self.headline is None else self.estimates[self.headline].total

    def describe_unpredicted(self) -> str:
        """Return why the click model predicts no value though another estimator does; empty if it does."""
        model = self.estimates["model"]
        if self.headline is None or model.total.is_identified:
            return ""
        why = "" if self.reason == model.reason else f"{self.reason}; "
        return f"{why}no value by model: {model.reason}"

    def to_dict(self, user_types: tuple[str, ...]) -> dict[str, Any]:
        """Return the values as JSON-compatible values."""
        return {
            "name": self.name,
            "headline": self.headline,
            "reason": self.reason,
            "value": _as_json(*self.value),
            "is_cross_fitted": self.is_cross_fitted,
            "rankings": {
                name: list(ranking) for name, ranking in zip(user_types, self.rankings, strict=False)
            },
            "estimates": [one.to_dict(user_types) for one in self.estimates.values()],
            "unsupported_cells": [
                {"user_type": user_type, "item": item, "position": position}
                for user_type, item, position in self.unsupported
            ],
            "effective_visits": dict(zip(user_types, self.effective_visits.tolist(), strict=True)),
            "clipped_share": self.clipped_share,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation(Tabular):
    """What targets would have earned, estimated from a log.

    ``to_frame`` returns a row for each target, estimator and user type, and one for all visits, with the
    columns ``target``, ``estimator``, ``is_headline``, ``user_type``, ``value``, ``low``, ``high`` and
    ``is_identified``. Values are clicks per visit.

    Attributes
    ----------
    targets
        Values of each target.
    user_types
        Names of the user types.
    level
        Confidence level of the intervals.
    utility
        Name of the collective utility.
    model
        Click model of the direct method, and how it was chosen.
    propensities
        ``logged``, or ``estimated`` from the shares of displays.
    n_visits
        Number of visits of each user type, shape (N,).
    n_folds
        Number of groups of folds for cross-fitting.
    prices
        Price of equality of each learned equal target against the learned personalized one.
    given_names
        Name of each target by the text that it was given as: ``equal:utilitarian`` by ``equal``.
    """

    targets: tuple[TargetEvaluation, ...]
    user_types: tuple[str, ...]
    level: float
    utility: str
    model: EvaluationModelChoice
    propensities: Literal["logged", "estimated"]
    n_visits: Floats
    n_folds: int
    prices: tuple[EstimatedPriceOfEquality, ...] = ()
    given_names: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> TargetEvaluation:
        for target in self.targets:
            if target.name in (name, self.given_names.get(name)):
                return target
        raise UnknownNameError("target", name, [target.name for target in self.targets])

    def shares_lost(self, price: EstimatedPriceOfEquality) -> Floats:
        """Return the share of its clicks that each user type loses by an equal target, shape (N,).

        Below 0 for a type that gains, NaN where a value is not identified or 0.

        Parameters
        ----------
        price
            One of the prices: its targets and its estimator.
        """
        equal, personalized = (
            self[name].estimates[cast("ValueEstimator", price.estimator)].values
            for name in (price.target, price.reference)
        )
        shares = np.divide(equal, personalized, out=np.full(equal.size, np.nan), where=personalized > 0)
        return np.asarray(1.0 - shares)

    def __iter__(self) -> Iterator[TargetEvaluation]:
        return iter(self.targets)

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return the values as text: a line for each target and estimator, and notes."""
        percent = f"{100 * self.level:g}%"
        lines = [
            (
                f"Clicks per visit, {percent} intervals, from {self.n_visits.sum():,.0f} visits; "
                f"click model {self.model.describe()}: {self.model.reason}."
            )
        ]
        if self.model.is_misfit:
            lines.append(
                f"The click model does not fit (p = {self.model.misfit:.1g}): values by cells count."
            )
        for target in self.targets:
            note = " (learned from the log, cross-fitted)" if target.is_cross_fitted else ""
            lines.append(f"{shorten(target.name)}{note}")
            for name, estimate in target.estimates.items():
                mark = "*" if name == target.headline else " "
                lines.append(f" {mark} {name:<6} {_as_text(estimate.total)}")
            lines.append(
                f"   effective visits {target.effective_visits.sum():,.0f}"
                + (f", {100 * target.clipped_share:.1f}% clipped" if target.clipped_share else "")
            )
            if target.unsupported:
                user_type, item, position = target.unsupported[0]
                more = f" and {len(target.unsupported) - 1} more cells" if len(target.unsupported) > 1 else ""
                where = f"{shorten(item)} at position {position} to {shorten(user_type)}"
                lines.append(f"   never shown: {where}{more}")
            if target.headline is None:
                lines.append(f"   not identified: {target.reason}")
            elif unpredicted := target.describe_unpredicted():
                lines.append(f"   {unpredicted}")
        lines.extend(
            f"Price of equality of {one.target}: {_percent(one.price, one.low, one.high)}"
            for one in self.prices
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON-compatible values; null for what is not identified."""
        return {
            "level": self.level,
            "utility": self.utility,
            "click_model": self.model.to_dict(),
            "propensities": self.propensities,
            "visits": dict(zip(self.user_types, self.n_visits.tolist(), strict=True)),
            "n_folds": self.n_folds,
            "targets": [target.to_dict(self.user_types) for target in self.targets],
            "price_of_equality": [price.to_dict() for price in self.prices],
        }

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                *("target", "estimator", "is_headline", "user_type"),
                *("value", "low", "high", "is_identified"),
            )
        }
        for target in self.targets:
            for name, estimate in target.estimates.items():
                rows = [
                    (user_type, value, *ends)
                    for user_type, value, ends in zip(
                        self.user_types, estimate.values, estimate.intervals, strict=True
                    )
                ]
                for user_type, *numbers in (*rows, (TOTAL, *estimate.total)):
                    head = (target.name, name, name == target.headline, user_type)
                    row = (*head, *map(float, numbers), bool(np.isfinite(numbers[0])))
                    for column, entry in zip(columns.values(), row, strict=True):
                        column.append(entry)
        return {name: list(column) for name, column in columns.items()}


def _as_json(value: float, low: float, high: float) -> dict[str, float | None] | None:
    if not np.isfinite(value):
        return None
    low_or_none, high_or_none = (float(end) if np.isfinite(end) else None for end in (low, high))
    return {"value": float(value), "low": low_or_none, "high": high_or_none}


def _as_text(interval: ValueInterval) -> str:
    if not interval.is_identified:
        return "not identified"
    return f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def _percent(value: float, low: float, high: float) -> str:
    if not np.isfinite(value):
        return "not identified"
    if not np.isfinite(low):
        return f"{100 * value:.1f}%"
    return f"{100 * value:.1f}% [{100 * low:.1f}%, {100 * high:.1f}%]"
