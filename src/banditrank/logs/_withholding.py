"""Withholding of what a log cannot tell: estimates and rankings that its diagnosis rules out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError
from banditrank.estimators._click_models._fit import ClickModelFit
from banditrank.evaluation._evaluate import evaluate
from banditrank.evaluation._evaluation import Evaluation
from banditrank.evaluation._targets import EvaluationTarget
from banditrank.logs._diagnosis import LogDiagnosis

_WITHOUT_RATES = ("no-clicks", "all-clicked")
_WITHOUT_POSITIONS = ("positions-are-noise", "single-position", "fixed-layout")
_WITH_RANKINGS = ("single-position",)  # click rates compare items at one position


@dataclass(frozen=True, slots=True)
class Withheld:
    """What is not reported of a log, and why.

    Attributes
    ----------
    positions, items, rankings
        Why the worth of positions, the appeal of items, and what is learned from both are not reported; empty
        if they are.
    """

    positions: str = ""
    items: str = ""
    rankings: str = ""


def find_withheld(diagnosis: LogDiagnosis) -> Withheld:
    """Return what a diagnosis rules out.

    Without rates nothing is reported. A log that cannot tell position from item does not teach rankings, even
    if each cell was shown: an item that would be better at another position was never shown there. A log with
    a single position does: click rates compare its items.
    """
    reasons = {one.code: one.text for one in diagnosis.findings}
    for code in _WITHOUT_RATES:
        if code in reasons:
            return Withheld(reasons[code], reasons[code], reasons[code])
    positions = next((reasons[code] for code in _WITHOUT_POSITIONS if code in reasons), "")
    rankings = next(
        (
            one.text
            for one in diagnosis.findings
            if one.severity == "unknowable" and one.code not in _WITH_RANKINGS
        ),
        "",
    )
    return Withheld(positions=positions, rankings=rankings)


def find_missing_items(cube: ClickCube) -> str:
    """Return why a log with fewer items than positions does not teach rankings; empty for other logs."""
    shown = np.unique(cube.cells.item).size
    if shown >= cube.n_positions:
        return ""
    items = "1 item" if shown == 1 else f"{shown} items"
    return f"The log has {items} for {cube.n_positions} positions: a ranking shows each item once."


def withhold_estimates(fit: ClickModelFit, diagnosis: LogDiagnosis) -> ClickModelFit:
    """Return a fit without the estimates that a diagnosis rules out: NaN instead of them.

    Cascade and dependent-click models know positions that cannot be compared, which is reported if the log is
    sure of the model, or the caller chose it.
    """
    withheld = find_withheld(diagnosis)
    is_known = np.array([one.is_position_known for one in diagnosis.user_types])
    worth, worth_ends = fit.position_worth.copy(), fit.position_intervals.copy()
    if withheld.positions:
        is_known = np.zeros_like(is_known)
    is_assumed = fit.selection is not None and not fit.selection.is_sure
    if is_assumed or fit.model in ("single-look", "position-based", "user-browsing") or withheld.positions:
        worth[~is_known], worth_ends[~is_known] = np.nan, np.nan
    appeal, appeal_ends = fit.item_appeal.copy(), fit.item_intervals.copy()
    if withheld.items:
        appeal[:], appeal_ends[:] = np.nan, np.nan
    changes: dict[str, Any] = {}
    if withheld.positions:
        changes = dict.fromkeys(
            ("examination", "examination_intervals", "continuation", "continuation_intervals")
        )
    return replace(
        fit,
        position_worth=worth,
        position_intervals=worth_ends,
        item_appeal=appeal,
        item_intervals=appeal_ends,
        **changes,
    )


@dataclass(frozen=True, slots=True)
class KnownEvaluation:
    """Evaluation of the targets that a log can tell about.

    Attributes
    ----------
    evaluation
        Values; None if no target can be evaluated.
    withheld
        Why each other target is not evaluated.
    """

    evaluation: Evaluation | None
    withheld: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as values of JSON."""
        document = {} if self.evaluation is None else self.evaluation.to_dict()
        return {**document, "withheld": dict(self.withheld)}


def evaluate_known(
    cube: ClickCube, diagnosis: LogDiagnosis, targets: Mapping[str, Any] | Sequence[Any], **options: Any
) -> KnownEvaluation:
    """Evaluate targets, except those that would be learned from what the log cannot tell.

    Parameters
    ----------
    cube
        Counts of the log.
    diagnosis
        Their diagnosis.
    targets, options
        As for `evaluate`.

    Raises
    ------
    InvalidInputError, UnknownNameError
        As for `evaluate`.
    """
    found = find_withheld(diagnosis)
    reason = found.items or found.rankings or find_missing_items(cube)
    pairs = dict(targets) if isinstance(targets, Mapping) else {_name(one): one for one in targets}
    withheld = {
        name: reason for name, value in pairs.items() if found.items or (reason and _is_learned(value))
    }
    kept = {name: value for name, value in pairs.items() if name not in withheld}
    if not kept:
        return KnownEvaluation(None, withheld)
    given = kept if isinstance(targets, Mapping) else list(kept.values())
    return KnownEvaluation(evaluate(cube, given, **options), withheld)


def _name(target: object) -> str:
    return target.name if isinstance(target, EvaluationTarget) else str(target)


def _is_learned(target: object) -> bool:
    return isinstance(target, str) and target != "current" and not target.endswith((".json", ".csv"))


def check_estimates(fit: ClickModelFit, diagnosis: LogDiagnosis) -> None:
    """Check that a log tells all positions and items, as a problem needs them.

    Parameters
    ----------
    fit
        Estimates, without those that the diagnosis rules out.
    diagnosis
        The diagnosis of the log.

    Raises
    ------
    InvalidInputError
        If it does not; names the first that is not identified.
    """
    for i, name in enumerate(fit.user_types):
        for k in np.flatnonzero(~fit.is_position_identified[i]):
            rule = f"must tell the worth of all positions to make a problem: {_advise(fit, diagnosis)}"
            raise InvalidInputError("log", rule, f"position {k + 1} for user type {name} is not identified")
        for j in np.flatnonzero(~fit.is_item_identified[i]):
            rule = (
                "must tell the appeal of all items to make a problem: keep those that were shown with --items"
            )
            raise InvalidInputError("log", rule, f"{fit.items[j]} for user type {name} is not identified")


def _advise(fit: ClickModelFit, diagnosis: LogDiagnosis) -> str:
    """Return what to do about positions whose worth is not identified."""
    is_known = fit.is_position_identified.all(axis=0)
    n_known = int(np.logical_and.accumulate(is_known).sum())
    if n_known > 1:
        return f"keep those that it tells with --positions 1-{n_known}"
    codes = {one.code for one in diagnosis.findings}
    if "single-position" in codes:
        return "it takes two positions or more"
    if codes & {"no-clicks", "all-clicked"}:
        return "check the column of clicks"
    if "positions-are-noise" in codes:
        return "check the column of positions"
    if diagnosis.swaps:
        return "show the swaps of items that banditrank log diagnose lists, and count again"
    return "banditrank log diagnose says what is missing"
