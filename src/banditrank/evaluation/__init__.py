"""Off-policy evaluation: what rankings and policies would have earned, from the log of another policy."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.evaluation._collective_value import ValueInterval
    from banditrank.evaluation._evaluate import evaluate
    from banditrank.evaluation._evaluation import Evaluation, TargetEvaluation, ValueEstimate
    from banditrank.evaluation._gamma_interval import gamma_interval
    from banditrank.evaluation._model_choice import EvaluationModelChoice
    from banditrank.evaluation._price_of_equality import EstimatedPriceOfEquality
    from banditrank.evaluation._targets import load_rankings, target_of_visits

__all__ = [
    "EstimatedPriceOfEquality",
    "Evaluation",
    "EvaluationModelChoice",
    "TargetEvaluation",
    "ValueEstimate",
    "ValueInterval",
    "evaluate",
    "gamma_interval",
    "load_rankings",
    "target_of_visits",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_collective_value": ("ValueInterval",),
            "_evaluate": ("evaluate",),
            "_evaluation": ("Evaluation", "TargetEvaluation", "ValueEstimate"),
            "_gamma_interval": ("gamma_interval",),
            "_model_choice": ("EvaluationModelChoice",),
            "_price_of_equality": ("EstimatedPriceOfEquality",),
            "_targets": ("load_rankings", "target_of_visits"),
        },
    )
