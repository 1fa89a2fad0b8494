"""Estimators: from counts to arrival rates, position preferences and item means, with confidence sets."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.estimators._click_models._fit import ClickModelFit, fit_click_model
    from banditrank.estimators._click_models._goodness_of_fit import GoodnessOfFit
    from banditrank.estimators._click_models._parameters import ClickModelName
    from banditrank.estimators._click_models._scores import ModelScores
    from banditrank.estimators._click_models._selection import (
        ClickModelSelection,
        ModelComparison,
        select_click_model,
    )
    from banditrank.estimators._confidence_radii import (
        item_mean_error_rate,
        item_mean_radius,
        position_preference_error_rate,
        position_preference_radius,
    )
    from banditrank.estimators._confidence_sequences import (
        ConfidenceSequence,
        LiftConfidenceSequence,
        RewardSums,
        lift_confidence_sequence,
        mean_confidence_sequence,
    )
    from banditrank.estimators._estimates import Estimates, estimate
    from banditrank.estimators._intervals import ConfidenceIntervals, confidence_intervals
    from banditrank.estimators._smoothing import Smoothing

__all__ = [
    "ClickModelFit",
    "ClickModelName",
    "ClickModelSelection",
    "ConfidenceIntervals",
    "ConfidenceSequence",
    "Estimates",
    "GoodnessOfFit",
    "LiftConfidenceSequence",
    "ModelComparison",
    "ModelScores",
    "RewardSums",
    "Smoothing",
    "confidence_intervals",
    "estimate",
    "fit_click_model",
    "item_mean_error_rate",
    "item_mean_radius",
    "lift_confidence_sequence",
    "mean_confidence_sequence",
    "position_preference_error_rate",
    "position_preference_radius",
    "select_click_model",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_click_models._fit": ("ClickModelFit", "fit_click_model"),
            "_click_models._goodness_of_fit": ("GoodnessOfFit",),
            "_click_models._parameters": ("ClickModelName",),
            "_click_models._scores": ("ModelScores",),
            "_click_models._selection": (
                "ClickModelSelection",
                "ModelComparison",
                "select_click_model",
            ),
            "_confidence_radii": (
                "item_mean_error_rate",
                "item_mean_radius",
                "position_preference_error_rate",
                "position_preference_radius",
            ),
            "_confidence_sequences": (
                "ConfidenceSequence",
                "LiftConfidenceSequence",
                "RewardSums",
                "lift_confidence_sequence",
                "mean_confidence_sequence",
            ),
            "_estimates": (
                "Estimates",
                "estimate",
            ),
            "_intervals": (
                "ConfidenceIntervals",
                "confidence_intervals",
            ),
            "_smoothing": ("Smoothing",),
        },
    )
