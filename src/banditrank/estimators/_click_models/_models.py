"""The fits of all click models, by name."""

from collections.abc import Callable
from typing import NamedTuple

from banditrank.counts._click_cube import ClickCube
from banditrank.estimators._click_models._cascade import estimate_cascade, fit_cascade
from banditrank.estimators._click_models._dependent_click import estimate_dependent_click, fit_dependent_click
from banditrank.estimators._click_models._estimates_of_model import ModelEstimates
from banditrank.estimators._click_models._parameters import ClickModelName, ModelParameters
from banditrank.estimators._click_models._position_based import estimate_position_based, fit_position_based
from banditrank.estimators._click_models._single_look import estimate_single_look, fit_single_look
from banditrank.estimators._click_models._user_browsing import estimate_user_browsing, fit_user_browsing


class FittedModel(NamedTuple):
    """How a model is fitted.

    Attributes
    ----------
    fit
        Return the parameters of maximum likelihood, for those of a similar log to start from, or None.
    estimate
        Return estimates with intervals for them, and a confidence level.
    """

    fit: Callable[[ClickCube, ModelParameters | None], ModelParameters]
    estimate: Callable[[ClickCube, ModelParameters, float], ModelEstimates]


def _without_start(
    fit: Callable[[ClickCube], ModelParameters],
) -> Callable[[ClickCube, ModelParameters | None], ModelParameters]:
    """Return a fit that needs no parameters to start from as one that is given them."""
    return lambda cube, _: fit(cube)


MODELS: dict[ClickModelName, FittedModel] = {
    "cascade": FittedModel(_without_start(fit_cascade), estimate_cascade),
    "single-look": FittedModel(_without_start(fit_single_look), estimate_single_look),
    "position-based": FittedModel(fit_position_based, estimate_position_based),
    "dependent-click": FittedModel(fit_dependent_click, estimate_dependent_click),
    "user-browsing": FittedModel(fit_user_browsing, estimate_user_browsing),
}
"""All models, the ones with fewer parameters first."""
