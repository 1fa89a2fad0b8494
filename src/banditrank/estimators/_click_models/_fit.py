"""Fit a click model to a log: position worth, item appeal, intervals, scores and a test."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditrank._checks import check_number
from banditrank._frames import Columns, Tabular
from banditrank._text import list_names, shorten
from banditrank.counts._click_cube import ClickCube, CubeLists
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._estimates_of_model import (
    ModelEstimates,
    cell_tables,
    empty_estimates,
    has_single_position,
    lacks_misses,
)
from banditrank.estimators._click_models._goodness_of_fit import GoodnessOfFit, assess_fit
from banditrank.estimators._click_models._item_position_graph import find_components
from banditrank.estimators._click_models._models import MODELS
from banditrank.estimators._click_models._parameters import ClickModelName, ModelParameters, check_model
from banditrank.estimators._click_models._scores import ModelScores, score_by_fold
from banditrank.estimators._click_models._selection import (
    ClickModelSelection,
    as_json,
    held_out_scores,
    select_click_model,
)
from banditrank.estimators._intervals import MAX_LEVEL, MIN_LEVEL

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

NOT_IDENTIFIED = "not identified"
"""What text says in place of an estimate that the log does not determine."""

_MAX_LISTED_ITEMS = 10  # of a user type in a summary
_MAX_LISTED_TYPES = 20  # in a summary

_ALL_CLICKED_NOTE = (
    "every display was clicked: displays without a click are probably missing, and nothing is identified"
)

_MEANINGS: dict[ClickModelName, tuple[str, str]] = {
    "single-look": (
        "share of users who look at the position",
        "probability of a click on an item that is looked at",
    ),
    "position-based": (
        "examination relative to the most examined position",
        "probability of a click at the most examined position",
    ),
    "user-browsing": (
        "examination relative to the most examined position, on average over the visits of the log",
        "probability of a click where examination is largest",
    ),
    "cascade": (
        "share of visits that read the position",
        "probability of a click on an item that is read",
    ),
    "dependent-click": (
        "probability that the position is read, on average over the visits of the log",
        "probability of a click on an item that is read",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class ClickModelFit(Tabular):
    """A click model fitted to a log.

    ``to_frame`` returns a row for each position and each item of each user type. Estimates that the log does
    not identify are NaN, as are their intervals.

    Attributes
    ----------
    model
        Name of the model.
    user_types, items
        Names.
    level
        Confidence level of the intervals.
    position_worth
        Shape (N, K); `worth_meaning` says of what. Shares sum to 1, relative examination has the maximum 1.
    position_intervals
        Shape (N, K, 2).
    item_appeal
        Shape (N, M); `appeal_meaning` says of what.
    item_intervals
        Shape (N, M, 2).
    examination, examination_intervals
        γ of ``user-browsing`` by last click above (0: none) and position, shapes (N, K, K) and (N, K, K, 2).
    continuation, continuation_intervals
        λ of ``dependent-click``, shapes (N, K) and (N, K, 2).
    scores
        Scores on the log itself.
    held_out
        Scores on held-out visits; None if nothing was held out. Conditional ones of ``position-based`` are
        with the activity of visits.
    goodness_of_fit
        Chi-square test of the cells.
    selection
        How the model was chosen; None if it was given.
    has_shared_positions
        Whether all user types have the same positions.
    n_parameters
        Number of parameters that the log identifies.
    notes
        Assumptions and approximations, in words.
    """

    model: ClickModelName
    user_types: tuple[str, ...]
    items: tuple[str, ...]
    level: float
    position_worth: Floats
    position_intervals: Floats
    item_appeal: Floats
    item_intervals: Floats
    examination: Floats | None
    examination_intervals: Floats | None
    continuation: Floats | None
    continuation_intervals: Floats | None
    scores: ModelScores
    held_out: ModelScores | None
    goodness_of_fit: GoodnessOfFit
    selection: ClickModelSelection | None
    has_shared_positions: bool
    n_parameters: int
    notes: tuple[str, ...]
    _parameters: ModelParameters

    @property
    def is_position_identified(self) -> Booleans:
        """Whether the log determines the worth of each position, shape (N, K)."""
        return ~np.isnan(self.position_worth)

    @property
    def is_converged(self) -> bool:
        """Whether the estimates are the maximum of the likelihood."""
        return not self._parameters.unconverged

    @property
    def is_item_identified(self) -> Booleans:
        """Whether the log determines the appeal of each item, shape (N, M)."""
        return ~np.isnan(self.item_appeal)

    @property
    def best_known_type(self) -> int:
        """The user type with the most identified positions, to report positions that all types share."""
        return int(self.is_position_identified.sum(axis=1).argmax())

    @property
    def worth_meaning(self) -> str:
        """What the worth of a position is."""
        return _MEANINGS[self.model][0]

    @property
    def appeal_meaning(self) -> str:
        """What the appeal of an item is."""
        return _MEANINGS[self.model][1]

    def click_probabilities(self, user_type: int, rankings: ArrayLike) -> Floats:
        """Return the probability of a click at each position of rankings, shape (L, K).

        Probabilities of items, and at positions, that are not identified are NaN.

        Parameters
        ----------
        user_type
            Index of the user type.
        rankings
            Items, shape (L, K) or (K,).

        Raises
        ------
        InvalidInputError
            If an index is out of range, or rankings have too many positions.
        """
        items = np.atleast_2d(np.asarray(rankings, dtype=np.int64))
        n_types, n_positions = self.position_worth.shape
        if not 0 <= user_type < n_types:
            raise InvalidInputError("user_type", f"must be from 0 to {n_types - 1}", user_type)
        if (
            items.shape[1] > n_positions
            or items.min(initial=0) < 0
            or items.max(initial=0) >= len(self.items)
        ):
            rule = f"must be indices of {len(self.items)} items at up to {n_positions} positions"
            raise InvalidInputError("rankings", rule, rankings)
        types = np.full(items.shape[0], user_type, dtype=np.int64)
        chances = self._parameters.click_probabilities(types, items)
        is_known = self.is_item_identified[user_type][items]
        if self.model in ("single-look", "position-based") and n_positions > 1:
            shown = self.is_position_identified[user_type, : items.shape[1]]
            is_known &= shown | (self._single_position[user_type] == np.arange(items.shape[1]))
        elif self.model not in ("single-look", "position-based"):
            is_known = np.logical_and.accumulate(is_known, axis=1)  # clicks depend on the items above
        return np.where(is_known, chances, np.nan)

    @property
    def _single_position(self) -> NDArray[np.int64]:
        """The position of user types that were shown one only, else −1, shape (N,)."""
        has_appeal = self.is_item_identified.any(axis=1)
        is_single = has_appeal & ~self.is_position_identified.any(axis=1)
        return np.where(is_single, self._parameters.attention.argmax(axis=1), -1)

    def score(self, cube: ClickCube) -> ModelScores:
        """Return the scores of the model on another log with the same user types and items.

        Raises
        ------
        InvalidInputError
            If its user types, items or number of positions differ.
        """
        same = (cube.user_types, cube.items, cube.n_positions)
        if same != (self.user_types, self.items, self.position_worth.shape[1]):
            rule = "must have the user types, items and positions of the fit"
            raise InvalidInputError("cube", rule, f"{len(cube.items)} items, {cube.n_positions} positions")
        return score_by_fold(self._parameters.smoothed(), cube).total()

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as values of JSON; None stands for what is not identified."""
        fit = self.goodness_of_fit
        return {
            "model": self.model,
            "level": self.level,
            "worth_meaning": self.worth_meaning,
            "appeal_meaning": self.appeal_meaning,
            "has_shared_positions": self.has_shared_positions,
            "n_parameters": self.n_parameters,
            "user_types": [
                {
                    "user_type": name,
                    "positions": [
                        {
                            "position": k + 1,
                            **_estimate(self.position_worth[i, k], self.position_intervals[i, k]),
                        }
                        for k in range(self.position_worth.shape[1])
                    ],
                    "items": [
                        {"item": item, **_estimate(self.item_appeal[i, j], self.item_intervals[i, j])}
                        for j, item in enumerate(self.items)
                    ],
                }
                for i, name in enumerate(self.user_types)
            ],
            "scores": _scores_dict(self.scores),
            "held_out": None if self.held_out is None else _scores_dict(self.held_out),
            "goodness_of_fit": {
                "statistic": as_json(fit.statistic),
                "degrees_of_freedom": fit.degrees_of_freedom,
                "p_value": as_json(fit.p_value),
                "n_cells": fit.n_cells,
            },
            "selection": None if self.selection is None else self.selection.to_dict(),
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """Return the fit as text."""
        lines = [f"Click model: {self.model}"]
        if self.selection is not None:
            lines.append(f"  {self.selection.statement}")
        for scores, where in ((self.held_out, "held-out visits"), (self.scores, "the log itself")):
            if scores is not None and np.isfinite(scores.overall_perplexity):
                lines.append(f"Perplexity on {where}: {scores.overall_perplexity:.4f}")
                break
        fit = self.goodness_of_fit
        if np.isnan(fit.p_value):
            lines.append("Fit: not tested, too few cells with clicks")
        else:
            verdict = "does not fit" if fit.is_misfit else "no misfit found"
            lines.append(f"Fit: {verdict} (p = {fit.p_value:.2g}, {fit.n_cells:,} cells)")
        lines += [f"Note: {note}" for note in self.notes]
        lines.append(f"Position worth: {self.worth_meaning}; {self.level:.0%} intervals")
        lines.append(f"Item appeal: {self.appeal_meaning}")
        is_common = self.has_shared_positions and len(self.user_types) > 1
        if is_common:
            lines += ["", "All user types", *self._position_lines(self.best_known_type)]
        for i, name in enumerate(self.user_types[:_MAX_LISTED_TYPES]):
            lines += ["", f"User type {shorten(name)}"]
            lines += [] if is_common else self._position_lines(i)
            order = np.argsort(-np.nan_to_num(self.item_appeal[i], nan=-1.0), kind="stable")
            for j in order[:_MAX_LISTED_ITEMS]:
                value = _text(self.item_appeal[i, j], self.item_intervals[i, j])
                lines.append(f"  item {shorten(self.items[j])}: {value}")
            if len(self.items) > _MAX_LISTED_ITEMS:
                lines.append(f"  and {len(self.items) - _MAX_LISTED_ITEMS} more items")
        if len(self.user_types) > _MAX_LISTED_TYPES:
            lines += ["", f"and {len(self.user_types) - _MAX_LISTED_TYPES:,} more user types"]
        return "\n".join(lines)

    def _position_lines(self, user_type: int) -> list[str]:
        values = zip(self.position_worth[user_type], self.position_intervals[user_type], strict=True)
        return [f"  position {k + 1}: {_text(*value)}" for k, value in enumerate(values)]

    def __str__(self) -> str:
        return self.summary()

    def _columns(self) -> Columns:
        n_types, n_positions = self.position_worth.shape
        kinds, types, names, values, ends = [], [], [], [], []
        for i in range(n_types):
            kinds += ["position"] * n_positions + ["item"] * len(self.items)
            types += [self.user_types[i]] * (n_positions + len(self.items))
            names += [str(k + 1) for k in range(n_positions)] + list(self.items)
            values += [self.position_worth[i], self.item_appeal[i]]
            ends += [self.position_intervals[i], self.item_intervals[i]]
        estimates, intervals = np.concatenate(values), np.concatenate(ends)
        return {
            "user_type": types,
            "kind": kinds,
            "name": names,
            "estimate": estimates,
            "lower": intervals[:, 0],
            "upper": intervals[:, 1],
            "is_identified": ~np.isnan(estimates),
        }


def fit_click_model(
    cube: ClickCube,
    model: ClickModelName | Literal["auto"] = "auto",
    *,
    shared_positions: bool = False,
    level: float = 0.95,
    held_out: bool = True,
) -> ClickModelFit:
    """Fit a click model to a log.

    Parameters
    ----------
    cube
        The counts of the log.
    model
        ``single-look``, ``position-based``, ``cascade``, ``dependent-click``, ``user-browsing``, or ``auto``
        to choose by held-out likelihood (`select_click_model`).
    shared_positions
        Whether all user types have the same positions; by default each has its own, as in the paper.
    level
        Confidence level of the intervals.
    held_out
        Whether to score the model on held-out visits, which takes five more fits; ``auto`` always does.

    Returns
    -------
    ClickModelFit
        The fit. What the log does not identify is NaN.

    Raises
    ------
    InvalidInputError
        If the log has no displays or too many cells, the model needs visits and the log has none, or the
        level is out of range.
    UnknownNameError
        If there is no model of this name.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items = np.argsort(rng.random((20_000, 3)), axis=1)
    >>> chances = np.array([0.5, 0.3, 0.2])[items] * [1.0, 0.6, 0.4]
    >>> cube = ClickCube.from_visits(np.zeros(20_000), items, rng.random((20_000, 3)) < chances)
    >>> fit = fit_click_model(cube)
    >>> fit.model, fit.position_worth.round(2), fit.item_appeal.round(2)
    ('position-based', array([[1.  , 0.62, 0.41]]), array([[0.48, 0.3 , 0.2 ]]))
    """
    if not cube.cells.displays.any():
        raise InvalidInputError("cube", "must have displays", "none")
    cube.check_analysed()
    level = check_number("level", level, MIN_LEVEL, MAX_LEVEL)
    n_types = len(cube.type_values)
    fitted = _with_one_type(cube) if shared_positions else cube
    selection = select_click_model(fitted) if model == "auto" else None
    name = selection.model if selection is not None else check_model(model)
    parameters = MODELS[name].fit(fitted, None)
    estimates = MODELS[name].estimate(fitted, parameters, level)
    if lacks_misses(*cell_tables(cube)):
        estimates = empty_estimates(fitted, parameters)._replace(notes=(_ALL_CLICKED_NOTE,))
    else:
        estimates = _without_fixed_layouts(estimates, fitted)
    goodness = assess_fit(parameters, fitted)
    scores = score_by_fold(parameters, fitted).total()
    held = None
    if selection is not None:
        held = selection.held_out
    elif held_out:
        by_model = held_out_scores(fitted, [name])
        held = None if by_model is None else by_model[name].total()
    if shared_positions:
        estimates = _split_types(estimates, n_types, len(cube.items))
    return ClickModelFit(
        name,
        cube.user_types,
        cube.items,
        level,
        estimates.position_worth,
        estimates.position_intervals,
        estimates.item_appeal,
        estimates.item_intervals,
        estimates.examination,
        estimates.examination_intervals,
        estimates.continuation,
        estimates.continuation_intervals,
        scores,
        held,
        goodness,
        selection,
        shared_positions,
        estimates.n_parameters,
        (*_notes(name), *unconverged_notes(parameters, fitted), *estimates.notes),
        estimates.parameters,
    )


def _without_fixed_layouts(estimates: ModelEstimates, cube: ClickCube) -> ModelEstimates:
    """Return the estimates without those of user types whose clicked items were shown at one position each.

    Cascade, dependent-click and user-browsing models tell position from item there by assumption alone.
    """
    displays, clicks = cell_tables(cube)
    if has_single_position(displays):
        return estimates
    fixed = [i for i in range(len(displays)) if len(find_components(displays[i], clicks[i]).columns(0)) < 2]
    if not fixed:
        return estimates
    for values in (
        *(estimates.position_worth, estimates.position_intervals, estimates.examination),
        *(estimates.item_appeal, estimates.item_intervals, estimates.examination_intervals),
        *(estimates.continuation, estimates.continuation_intervals),
    ):
        if values is not None:
            values[fixed] = np.nan
    user_types = cube.user_types  # the property joins all names at each call
    names = list_names([user_types[i] for i in fixed])
    who = "" if len(fixed) == len(displays) else f" for user types {names}"
    note = (
        f"no clicked item was shown at two positions{who}: the log cannot tell position from item, and "
        "nothing is identified"
    )
    return estimates._replace(notes=(*estimates.notes, note))


def _with_one_type(cube: ClickCube) -> ClickCube:
    """Return the cube with an item for each user type and item, and a single user type."""
    n_items = len(cube.items)
    cells, visits, lists = cube.cells, cube.visits, cube.lists
    new_items = np.where(lists.items >= 0, lists.items + lists.user_type[:, None] * n_items, lists.items)
    return replace(
        cube,
        type_columns=(),
        type_values=(("all",),),
        items=tuple(f"{name}/{item}" for name in cube.user_types for item in cube.items),
        cells=cells._replace(
            user_type=np.zeros_like(cells.user_type), item=cells.user_type * n_items + cells.item
        ),
        visits=visits._replace(user_type=np.zeros_like(visits.user_type)),
        lists=CubeLists(lists.fold, np.zeros_like(lists.user_type), new_items, lists.clicks, lists.visits),
    )


def _split_types(estimates: ModelEstimates, n_types: int, n_items: int) -> ModelEstimates:
    """Return estimates of the cube with one type as those of its user types."""

    def repeated(values: Floats | None) -> Floats | None:
        return None if values is None else np.repeat(values, n_types, axis=0)

    old = estimates.parameters
    parameters = ModelParameters(
        old.model,
        old.appeal.reshape(n_types, n_items),
        np.repeat(old.attention, n_types, axis=0),
        old.looks.reshape(n_types, n_items),
        old.unconverged and tuple(range(n_types)),
    )
    return estimates._replace(
        parameters=parameters,
        position_worth=np.repeat(estimates.position_worth, n_types, axis=0),
        position_intervals=np.repeat(estimates.position_intervals, n_types, axis=0),
        item_appeal=estimates.item_appeal.reshape(n_types, n_items),
        item_intervals=estimates.item_intervals.reshape(n_types, n_items, 2),
        examination=repeated(estimates.examination),
        examination_intervals=repeated(estimates.examination_intervals),
        continuation=repeated(estimates.continuation),
        continuation_intervals=repeated(estimates.continuation_intervals),
    )


def _notes(model: ClickModelName) -> tuple[str, ...]:
    """Return sentences about what the log does not identify."""
    if model in ("single-look", "position-based", "user-browsing"):
        return ("only products of worth and appeal are observed; the scale of each is a convention",)
    return ()


def unconverged_notes(parameters: ModelParameters, cube: ClickCube) -> tuple[str, ...]:
    """Return a sentence about user types whose fit did not converge, if there are any."""
    if not parameters.unconverged:
        return ()
    user_types = cube.user_types  # the property joins all names at each call
    names = list_names([user_types[i] for i in parameters.unconverged])
    return (
        f"the fit did not converge for user types {names}: its estimates are not those of largest likelihood",
    )


def _estimate(value: float, ends: Floats) -> dict[str, Any]:
    return {"estimate": as_json(value), "lower": as_json(ends[0]), "upper": as_json(ends[1])}


def _text(value: float, ends: Floats) -> str:
    if np.isnan(value):
        return NOT_IDENTIFIED
    return f"{value:.3g} [{ends[0]:.3g}, {ends[1]:.3g}]"


def _scores_dict(scores: ModelScores) -> dict[str, Any]:
    return {
        "marginal_log_likelihood": as_json(scores.marginal_log_likelihood),
        "log_likelihood": as_json(scores.log_likelihood),
        "perplexity": [as_json(value) for value in scores.perplexity],
        "overall_perplexity": as_json(scores.overall_perplexity),
        "conditional_perplexity": [as_json(value) for value in scores.conditional_perplexity],
        "overall_conditional_perplexity": as_json(scores.overall_conditional_perplexity),
    }
