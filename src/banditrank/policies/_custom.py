"""Custom policies: instances, classes and functions of the user's own modules."""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
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

    def source_digest(self) -> str:
        """Return a hash of the source code, so that results of other code are not mistaken for this one's.

        It covers the module's file; in a notebook or an interactive session, the class or function alone.
        """
        named = type(self.source) if isinstance(self.source, Policy) else self.source
        content = _module_content(named.__module__) or repr(list(_code_values(named))).encode()
        return hashlib.sha256(content).hexdigest()[:16]


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


def parameter_values(policy: Policy) -> dict[str, str]:
    """Return the attributes of a policy as texts, for comparison with those of an earlier run."""
    values = getattr(policy, "__dict__", {})
    return {name: _stable_text(value) for name, value in sorted(values.items())}


def _module_content(name: str) -> bytes | None:
    """Return the source code of a module; None without a file, or if it is the running program."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name == "__main__":
        return None
    try:
        return Path(file).read_bytes()
    except OSError:
        return None


def _stable_text(value: object) -> str:
    """Return a text that is the same in every process."""
    is_plain = type(value).__repr__ is not object.__repr__ and not inspect.isroutine(value)
    return repr(value) if is_plain else type(value).__qualname__


def _code_values(source: object) -> Iterator[object]:
    """Yield the values that the code of a class or function consists of."""
    if inspect.isclass(source):
        for name, member in sorted(vars(source).items()):
            if not name.startswith("__") or inspect.isfunction(member):
                yield name
                yield from _code_values(member)
        return
    code = getattr(source, "__code__", source)
    if isinstance(code, CodeType):
        yield code.co_code
        yield code.co_names
        for constant in code.co_consts:
            yield from _code_values(constant)
    else:
        yield _stable_text(source)
