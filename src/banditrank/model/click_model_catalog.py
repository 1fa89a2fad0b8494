"""Click models by name."""

from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.model.cascade import CASCADE, DependentClick
from banditrank.model.click_models import SINGLE_LOOK, ClickModel
from banditrank.model.position_based import PositionBased

_MODELS = {model.name: model for model in (SINGLE_LOOK, PositionBased(), CASCADE, DependentClick())}
CLICK_MODEL_NAMES = tuple(_MODELS)


def as_click_model(model: ClickModel | str) -> ClickModel:
    """Return a click model, or the one of a name; raise an error if it is neither.

    Examples
    --------
    >>> as_click_model("cascade").name
    'cascade'
    """
    if isinstance(model, str):
        return as_click_model(model)
    if not isinstance(model, ClickModel):
        raise InvalidInputError("click model", "must be a ClickModel or the name of one", model)
    return model


def as_click_model(text: str) -> ClickModel:
    """Return a click model by name; ``dependent-click:0.8`` sets how probably a click satisfies.

    Examples
    --------
    >>> str(as_click_model("dependent-click:0.8"))
    'dependent-click:0.8'
    """
    if text in _MODELS:
        return _MODELS[text]
    name, _, parameter = text.partition(":")
    if name != DependentClick.name:
        raise UnknownNameError("click model", text, CLICK_MODEL_NAMES)
    try:
        satisfaction = float(parameter)
    except ValueError:
        raise InvalidInputError("click model", "must be dependent-click:SATISFACTION", text) from None
    return DependentClick(satisfaction)
