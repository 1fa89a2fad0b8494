"""The choice of the click model that values are predicted with.

`banditrank.estimators.select_click_model` decides, by held-out *marginal* likelihood where it does: how well
a model predicts the clicks at a position without knowing those above it, as for a ranking that was never
shown. Conditional likelihood, which browsing models maximise, can favour a model that predicts new rankings
worse.

Values are predicted with rank-one models. Those of a cascade and of dependent clicks are predicted by the
user-browsing model, of which they are special cases as far as examination depends on the last click above.
"""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.estimators._click_models._parameters import ClickModelName
from banditrank.estimators._click_models._selection import select_click_model
from banditrank.evaluation._log_cells import LogCells
from banditrank.evaluation._log_model import EvaluationModel, LogModelFit, fit_log_model

MAX_MISFIT = 0.01
"""p-value of the misfit test below which values by cells replace those of the model."""

_PREDICTED_BY: dict[ClickModelName, EvaluationModel] = {
    "single-look": "single-look",
    "position-based": "position-based",
    "user-browsing": "user-browsing",
    "cascade": "user-browsing",
    "dependent-click": "user-browsing",
}


@dataclass(frozen=True, slots=True)
class EvaluationModelChoice:
    """Click model of the direct method, and why it was chosen.

    Attributes
    ----------
    chosen
        Name of the chosen click model, that of `banditrank.estimators.fit_click_model`.
    model
        Name of the click model that predicts its values: the same, or ``user-browsing`` for ``cascade`` and
        ``dependent-click``.
    reason
        Why it was chosen.
    misfit
        p-value of Pearson's test of ``model`` on the cells of the log; NaN if no degree of freedom is left.
    """

    chosen: ClickModelName
    model: EvaluationModel
    reason: str
    misfit: float

    @property
    def is_misfit(self) -> bool:
        """Whether the test rejects the model, so that values by cells are the headline."""
        return bool(self.misfit < MAX_MISFIT)

    def describe(self) -> str:
        """Return the name of the chosen model, and of the one that predicts its values if it is another.

        Examples
        --------
        >>> EvaluationModelChoice("position-based", "position-based", "", 0.5).describe()
        'position-based'
        >>> EvaluationModelChoice("cascade", "user-browsing", "", 0.5).describe()
        'cascade, whose values user-browsing predicts'
        """
        if self.chosen == self.model:
            return self.chosen
        return f"{self.chosen}, whose values {self.model} predicts"

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON-compatible values."""
        return {
            "chosen": self.chosen,
            "model": self.model,
            "reason": self.reason,
            "misfit": None if np.isnan(self.misfit) else self.misfit,
            "is_misfit": self.is_misfit,
        }


def choose_model(
    cube: ClickCube, log: LogCells, model: str = "auto"
) -> tuple[EvaluationModelChoice, LogModelFit]:
    """Return the click model of the direct method, fitted to all groups of a log.

    Parameters
    ----------
    cube
        The cube.
    log
        Its cells.
    model
        Name of a click model, or ``auto``.

    Raises
    ------
    UnknownNameError
        If there is no such model.
    InvalidInputError
        If the model is ``user-browsing`` and the log has no visits.
    """
    chosen: ClickModelName
    if model == "auto":
        selection = select_click_model(cube)
        chosen, reason = selection.model, selection.statement
    else:
        names: dict[str, EvaluationModel] = {name: name for name in get_args(EvaluationModel)}
        if model not in names:
            raise UnknownNameError("click model", model, ("auto", *names))
        if model == "user-browsing" and not cube.has_visits:
            rule = "must not be user-browsing for a log without visits"
            raise InvalidInputError("click model", rule, model)
        chosen, reason = names[model], "chosen by the caller"
    predicting = _PREDICTED_BY[chosen]
    fit = fit_log_model(log, predicting)
    return EvaluationModelChoice(chosen, predicting, reason, fit.misfit()), fit
