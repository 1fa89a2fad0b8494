"""Identities of what a simulation is made of, which saved results are compared with."""

from collections.abc import Mapping
from typing import Any

from banditrank._identity import Identity, attribute_values, identify, is_library
from banditrank.errors import InvalidInputError
from banditrank.model._click_models import ClickModel
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._rewards import Rewards
from banditrank.model._timeline import Timeline
from banditrank.policies._base import Policy
from banditrank.policies._contextual.base import ContextualPolicy
from banditrank.policies._contextual.clustered import ClusteredPolicy

MAX_TEXT_LENGTH = 24  # of a parameter in a label; longer ones are shown as digests


def component_identities(
    policy: Policy | ContextualPolicy | ClusteredPolicy,
    problem: Problem | Timeline | ContextualProblem,
    rewards: Rewards,
    click_model: ClickModel,
) -> dict[str, Identity]:
    """Return the identities of a simulation's components, by name.

    Raises
    ------
    InvalidInputError
        If an attribute of a component has no digest; the message names it.
    """
    components: Mapping[str, object] = {
        "policy": policy,
        "problem": problem,
        "rewards": rewards,
        "click_model": click_model,
    }
    return {name: identify(name, component) for name, component in components.items()}


def own_digests(identities: Mapping[str, Identity]) -> dict[str, str]:
    """Return the digests of the components that contain code of the user's own, by name."""
    return {name: identity.digest for name, identity in identities.items() if identity.has_own_code}


def own_parameters(policy: object, prefix: str = "") -> dict[str, str]:
    """Return the class and the attributes of a policy of the user's own as short texts, by name.

    Attributes of policies inside it follow with dotted names. A built-in policy describes itself, and has
    none.
    """
    texts = {}
    if not is_library(type(policy).__module__):
        texts[f"{prefix}class"] = type(policy).__qualname__.rpartition(".")[2]
    for name, value in attribute_values(policy).items():
        if isinstance(value, Policy):
            texts |= own_parameters(value, f"{prefix}{name}.")
        elif texts and not name.startswith("__"):
            texts[f"{prefix}{name}"] = _short_text(name, value)
    return texts


def _short_text(name: str, value: Any) -> str:
    """Return a text without spaces that is the same in every process."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    is_plain = isinstance(plain, bool | int | float | str | tuple | list | None)
    text = plain if isinstance(plain, str) else repr(plain)
    if is_plain and len(text) <= MAX_TEXT_LENGTH and " at 0x" not in text:
        return "".join(text.split())
    try:
        return identify(name, value).digest[:8]
    except InvalidInputError:  # a policy that cannot be saved
        return type(value).__name__
