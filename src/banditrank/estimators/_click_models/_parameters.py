"""Parameters of click models, and the click probabilities that follow from them.

Each model has the appeal μ of the items, and parameters of positions:

================  ==========================================================================================
single-look       ρ_k, summing to 1: the user looks at position k, and nowhere else
position-based    κ_k: position k is examined, independently of the others
user-browsing     γ_ak: position k is examined if the last click above was at position a (0: none)
cascade           none: positions are read from the top up to the first click
dependent-click   λ_k: the user reads on after a click at position k
================  ==========================================================================================

Dupret and Piwowarski (2008) introduced user-browsing, Craswell et al. (2008) cascade, Guo et al. (2009)
dependent-click.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from banditrank._compilation import compiled
from banditrank.errors import UnknownNameError
from banditrank.estimators._click_models._visit_activity import ALIKE, VisitActivity

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

ClickModelName: TypeAlias = Literal[
    "single-look", "position-based", "cascade", "dependent-click", "user-browsing"
]
"""Names of the click models that are fitted to logs."""

MODEL_NAMES: tuple[ClickModelName, ...] = get_args(ClickModelName)
"""Names of the click models that are fitted to logs."""

MIN_PROBABILITY = 1e-12
"""Floor of the probabilities whose logarithm is taken."""

_MIN_ATTENTION = 1e-4  # of a position that was never clicked in the data of the fit, for new data


@dataclass(frozen=True, slots=True, eq=False)
class ModelParameters:
    """Parameters of a click model for all user types.

    Attributes
    ----------
    model
        Name of the model.
    appeal
        μ, shape (N, M).
    attention
        ρ or κ, shape (N, K); γ, shape (N, K, K), indexed by the last click above and the position; λ, shape
        (N, K); ones under ``cascade``.
    looks
        Estimated number of times that each item was examined, shape (N, M): how much data ``appeal`` rests
        on.
    unconverged
        Indices of user types whose fit stopped before the maximum of the likelihood.
    long_tails
        Indices of user types whose items with few looks are compared within themselves.
    activity
        Distribution of the activity of visits under ``position-based``.
    """

    model: ClickModelName
    appeal: Floats
    attention: Floats
    looks: Floats
    unconverged: tuple[int, ...] = ()
    long_tails: tuple[int, ...] = ()
    activity: VisitActivity = ALIKE

    def smoothed(self) -> "ModelParameters":
        """Return the parameters with one more look at each item, of average appeal, for data of other visits.

        An item without a click would otherwise have probability 0, and a click on it the likelihood 0.
        """
        clicks = (self.appeal * self.looks).sum(axis=1, keepdims=True)
        average = (clicks + 0.5) / (self.looks.sum(axis=1, keepdims=True) + 1.0)
        appeal = (self.appeal * self.looks + average) / (self.looks + 1.0)
        attention = self.attention
        if self.model in ("single-look", "position-based", "user-browsing"):
            attention = np.maximum(attention, _MIN_ATTENTION)
        return replace(self, appeal=appeal, attention=attention)

    def click_probabilities(self, user_type: Indices, items: Indices) -> Floats:
        """Return the probability of a click at each position of rankings, shape (L, K).

        Parameters
        ----------
        user_type
            Shape (L,).
        items
            Item at each position, shape (L, K); −1 where nothing is shown.
        """
        appeal = self._appeal_of(user_type, items)
        n, n_positions = items.shape
        if self.model in ("single-look", "position-based"):
            return appeal * self.attention[user_type, :n_positions]
        result = np.empty((n, n_positions))
        if self.model == "user-browsing":
            _browse(user_type, appeal, self.attention, np.empty(n_positions + 1), result)
            return result
        examined = np.ones(n)
        for k in range(n_positions):
            result[:, k] = examined * appeal[:, k]
            examined = examined * (1.0 - appeal[:, k] * (1.0 - self._continuation(user_type, k)))
        return result

    def conditional_probabilities(self, user_type: Indices, items: Indices, clicks: Indices) -> Floats:
        """Return the probability of a click at each position given the clicks above, shape (L, K).

        Parameters
        ----------
        user_type, items
            As for `click_probabilities`.
        clicks
            Clicked positions as bits, shape (L,).
        """
        n, n_positions = items.shape
        if self.model == "position-based":
            chances = self.click_probabilities(user_type, items)
            return self.activity.given_clicks_above(chances, clicks)
        appeal = self._appeal_of(user_type, items)
        result = np.empty((n, n_positions))
        above = np.zeros(n, dtype=np.int64)
        rest = np.ones(n)  # single-look: no click so far; scanning models: still reading
        for k in range(n_positions):
            is_clicked = (clicks >> k) & 1 == 1
            if self.model == "single-look":
                chance = appeal[:, k] * self.attention[user_type, k]
                result[:, k] = np.minimum(chance / np.maximum(rest, MIN_PROBABILITY), 1.0)
                rest = np.where(is_clicked, np.inf, rest - chance)
            elif self.model == "user-browsing":
                result[:, k] = appeal[:, k] * self.attention[user_type, above, k]
                above[is_clicked] = k + 1
            else:
                result[:, k] = appeal[:, k] * rest
                without = rest * (1.0 - appeal[:, k]) / np.maximum(1.0 - result[:, k], MIN_PROBABILITY)
                rest = np.where(is_clicked, self._continuation(user_type, k), without)
        return result

    def _appeal_of(self, user_type: Indices, items: Indices) -> Floats:
        appeal = self.appeal[user_type[:, None], np.maximum(items, 0)]
        return np.where(items >= 0, appeal, 0.0)

    def _continuation(self, user_type: Indices, position: int) -> Floats | float:
        return 0.0 if self.model == "cascade" else self.attention[user_type, position]


@compiled
def _browse(user_type: Indices, appeal: Floats, examination: Floats, reached: Floats, result: Floats) -> None:
    """Write the probability of a click at each position of lists, by the last click above.

    Parameters
    ----------
    user_type
        Shape (L,).
    appeal
        Of the item at each position, shape (L, K).
    examination
        γ, shape (N, K, K).
    reached
        Probability of each last click above, shape (K + 1,), scratch.
    result
        Shape (L, K), written.
    """
    for row in range(user_type.size):
        gamma = examination[user_type[row]]
        reached[0] = 1.0
        for k in range(appeal.shape[1]):
            clicked = 0.0
            for above in range(k + 1):
                with_click = reached[above] * gamma[above, k] * appeal[row, k]
                clicked += with_click
                reached[above] -= with_click
            reached[k + 1] = clicked
            result[row, k] = clicked


def check_model(model: str) -> ClickModelName:
    """Return the name of a click model.

    Raises
    ------
    UnknownNameError
        If there is no click model of this name.
    """
    for name in MODEL_NAMES:
        if model == name:
            return name
    raise UnknownNameError("model", model, ("auto", *MODEL_NAMES))
