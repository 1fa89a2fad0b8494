"""The choice of the click model that values are predicted with.

Where no visit has two clicks, users look once: ``single-look``. Otherwise the held-out *marginal* likelihood
decides between ``position-based`` and ``user-browsing``: how well each predicts the clicks at a position
without knowing those above it, as for a ranking that was never shown. Conditional likelihood, which browsing
models maximise, can favour a model that predicts new rankings worse.
"""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank.counts._click_cube import ClickCube
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.evaluation._direct import predicted_clicks
from banditrank.evaluation._log_cells import LogCells
from banditrank.evaluation._rank_one_fit import EvaluationModel, RankOneFit, fit_rank_one

Floats = NDArray[np.float64]

MAX_MISFIT = 0.01
"""p-value of the misfit test below which values by cells replace those of the model."""

_MIN_CHANCE = 1e-9
_COMPARED: tuple[EvaluationModel, ...] = ("user-browsing", "position-based")


@dataclass(frozen=True, slots=True)
class EvaluationModelChoice:
    """Click model of the direct method, and why it was chosen.

    Attributes
    ----------
    model
        Name of the click model.
    reason
        Why it was chosen.
    misfit
        p-value of Pearson's test of the model on the cells of the log; NaN if no degree of freedom is left.
    """

    model: EvaluationModel
    reason: str
    misfit: float

    @property
    def is_misfit(self) -> bool:
        """Whether the test rejects the model, so that values by cells are the headline."""
        return bool(self.misfit < MAX_MISFIT)

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON-compatible values."""
        misfit = None if np.isnan(self.misfit) else self.misfit
        return {"model": self.model, "reason": self.reason, "misfit": misfit, "is_misfit": self.is_misfit}


def choose_model(
    cube: ClickCube, log: LogCells, model: str = "auto"
) -> tuple[EvaluationModelChoice, RankOneFit]:
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
    reason = "chosen by the caller"
    if model == "auto":
        model, reason = _choose(cube, log)
    elif model not in get_args(EvaluationModel):
        raise UnknownNameError("click model", model, ("auto", *get_args(EvaluationModel)))
    elif model == "user-browsing" and not cube.has_visits:
        raise InvalidInputError("click model", "must not be user-browsing for a log without visits", model)
    names: dict[str, EvaluationModel] = {name: name for name in get_args(EvaluationModel)}
    fit = fit_rank_one(log, names[model])
    return EvaluationModelChoice(names[model], reason, fit.misfit()), fit


def _choose(cube: ClickCube, log: LogCells) -> tuple[str, str]:
    if not cube.has_visits:
        return "position-based", "the log has no visits, so that the clicks above a position are unknown"
    if not (cube.visits.visits[cube.visits.n_clicks > 1]).any():
        return "single-look", "no visit has two clicks"
    if not cube.lists.visits.size or len(log.visits) < 2:
        return "position-based", "the log has no ranking lists to compare browsing models by"
    gain, error = _marginal_gain(cube, log)
    chosen = "user-browsing" if gain > 0 else "position-based"
    other = "position-based" if gain > 0 else "user-browsing"
    reason = (
        f"held-out marginal log-likelihood of a visit is {abs(gain):.2g} (standard error {error:.1g}) "
        f"above that of {other}"
    )
    return chosen, reason


def _marginal_gain(cube: ClickCube, log: LogCells) -> tuple[float, float]:
    """Return by how much user browsing predicts held-out clicks better, a visit, and the standard error.

    Each half of the groups is predicted from the other half.
    """
    lists, n_groups = cube.lists, len(log.visits)
    half_of_list = (np.maximum(lists.fold, 0) % n_groups) % 2
    half_of_cell = log.group % 2
    clicked = (lists.clicks[:, None] >> np.arange(cube.n_positions)) & 1
    gains = np.full(lists.visits.size, np.nan)
    for half in (0, 1):
        is_training, is_held_out = half_of_cell != half, half_of_list == half
        columns = {name: getattr(log, name)[is_training] for name in log._fields[:11]}
        training = log._replace(**columns)
        user_type, items = lists.user_type[is_held_out], lists.items[is_held_out]
        scores = []
        for model in _COMPARED:
            chances = predicted_clicks(fit_rank_one(training, model), user_type, items)
            chances = chances.clip(_MIN_CHANCE, 1 - _MIN_CHANCE)
            likelihood = np.where(clicked[is_held_out], np.log(chances), np.log1p(-chances))
            scores.append(np.where(items >= 0, likelihood, 0.0).sum(axis=1))
        gains[is_held_out] = scores[0] - scores[1]
    is_known = np.isfinite(gains)
    visits, gains = lists.visits[is_known], gains[is_known]
    total = max(visits.sum(), 1.0)
    mean = float((visits * gains).sum() / total)
    return mean, float(np.sqrt((visits * (gains - mean) ** 2).sum()) / total)
