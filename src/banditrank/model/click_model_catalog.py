"""Click models by name."""

from banditrank.checks import check_number
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.cascade import CASCADE, DependentClick
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.position_based import PositionBased

CLICK_MODEL_NAMES = ("single-look", "position-based", "cascade", "dependent-click")


def find_click_model(text: str) -> ClickModel:
    """Return a click model by name; ``dependent-click:0.8`` sets how probably a click satisfies.

    Examples
    --------
    >>> str(find_click_model("dependent-click:0.8"))
    'dependent-click:0.8'
    """
    fixed = {model.name: model for model in (SINGLE_LOOK, PositionBased(), CASCADE)}
    name, *parameters = text.split(":")
    if text in fixed:
        return fixed[text]
    if name != DependentClick.name or len(parameters) > 1:
        raise UnknownNameError("click model", text, CLICK_MODEL_NAMES)
    if not parameters:
        return DependentClick()
    try:
        satisfaction = float(parameters[0])
    except ValueError:
        raise InvalidInputError("click model", "must be dependent-click:SATISFACTION", text) from None
    return DependentClick(check_number("satisfaction", satisfaction, 1e-3, 1.0))
