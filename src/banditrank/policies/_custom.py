"""Custom policies: instances, classes and functions of the user's own modules."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from banditrank._import_path import import_object
from banditrank.errors import InvalidInputError, describe_error
from banditrank.policies._base import Policy, Treatment
from banditrank.utilities._utility import UTILITARIAN, Utility

PolicySource: TypeAlias = Policy | type[Policy] | Callable[..., Policy]
"""A policy, its class, or a function that returns it."""

SETTINGS = ("treatment", "utility", "horizon")
"""Parameters that a class or function of policies may have, and is then given."""

_KIND = "a policy, a class derived from Policy or a function that returns a policy"


@dataclass(frozen=True, slots=True)
class CustomPolicy:
    """Makes a policy of the user's own for a treatment, a utility and a horizon.

    A class or function is called with those of `SETTINGS` that it has as parameters; all its other parameters
    need defaults.

    Parameters
    ----------
    source
        A policy, its class, or a function that returns it.
    label
        How the user refers to it: an import path, or the name of a class.
    field
        Name of the argument that it was given as, for errors.
    """

    source: PolicySource
    label: str
    field: str = "policy"

    @classmethod
    def from_import_path(cls, path: str, field: str = "policy") -> "CustomPolicy":
        """Import a custom policy: ``my_module:MyPolicy``.

        Raises
        ------
        InvalidInputError
            If the module is missing or fails, or the object is not a policy.
        """
        return cls(import_object(field, path, is_policy_source, _KIND), path, field)

    @classmethod
    def from_object(cls, source: PolicySource, field: str = "policy") -> "CustomPolicy":
        """Return a custom policy.

        Raises
        ------
        InvalidInputError
            If the object is not a policy, a class of policies or a function.
        """
        if not is_policy_source(source):
            raise InvalidInputError(field, f"must be {_KIND}, or the name of one", source)
        named = type(source) if isinstance(source, Policy) else source
        return cls(source, getattr(named, "__qualname__", type(source).__name__), field)

    def make_policy(
        self, *, treatment: Treatment = "personalized", utility: Utility = UTILITARIAN, horizon: int = 1
    ) -> Policy:
        """Return the policy; its treatment and utility are others where it does not offer these.

        Raises
        ------
        InvalidInputError
            If the class or function needs other arguments, fails, or returns no policy.
        """
        if isinstance(self.source, Policy):
            return self.source
        given = {"treatment": treatment, "utility": utility, "horizon": horizon}
        parameters = inspect.signature(self.source).parameters
        needed = [
            each.name
            for each in parameters.values()
            if each.default is each.empty
            and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            and (each.name not in given or each.kind is each.POSITIONAL_ONLY)
        ]
        if needed:
            rule = f"must need no arguments but {', '.join(SETTINGS)}, and needs {', '.join(needed)}"
            raise InvalidInputError(self.field, rule, self.label)
        try:
            made = self.source(**{name: value for name, value in given.items() if name in parameters})
        except Exception as error:
            rule = f"must be made without an error ({describe_error(error)})"
            raise InvalidInputError(self.field, rule, self.label) from error
        if not isinstance(made, Policy):
            rule = f"must return a policy, and returns {type(made).__name__}"
            raise InvalidInputError(self.field, rule, self.label)
        return made

    @property
    def name(self) -> str:
        """The policy's own name; that of the class, function or variable if it has none."""
        name = getattr(self.source if inspect.isclass(self.source) else self.make_policy(), "name", None)
        if isinstance(name, str) and name != Policy.name:
            return name
        return self.label.rpartition(":")[2].rpartition(".")[2]


def is_policy_source(source: object) -> bool:
    """Return whether an object is a policy, a class of policies, or a function.

    Examples
    --------
    >>> from banditrank.policies._uniform import UniformRandom
    >>> [is_policy_source(each) for each in (UniformRandom, lambda: None, int, "ucb-rank")]
    [True, True, False, False]
    """
    if inspect.isclass(source):
        return issubclass(source, Policy) and source is not Policy
    return isinstance(source, Policy) or inspect.isroutine(source)
