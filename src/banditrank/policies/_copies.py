"""Copies of policies: what a run changes in a policy is gone at its end.

Each replication and each learner has a deep copy of the policy. Functions, classes and modules are not
copied, nor are objects without attributes that cannot be copied, such as locks and database connections:
copies share them. Attributes of classes are shared, too, and must not change.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from banditrank._identity import attribute_values, identify, is_library
from banditrank.errors import InvalidInputError, describe_error
from banditrank.policies._base import Policy

AnyPolicy = TypeVar("AnyPolicy")


def copy_policy(policy: AnyPolicy) -> AnyPolicy:
    """Return a deep copy of a policy.

    Raises
    ------
    InvalidInputError
        If it cannot be copied, such as an iterator.

    Examples
    --------
    >>> from banditrank import UCBRank
    >>> policy = UCBRank(coefficient=0.5)
    >>> copy_policy(policy) == policy, copy_policy(policy) is policy
    (True, False)
    """
    try:
        return copy.deepcopy(policy)
    except Exception:  # noqa: BLE001 - objects of users may raise anything
        shared = {id(leaf): leaf for leaf in _leaves(policy, set()) if not _is_copyable(leaf)}
    for leaf in shared.values():
        if isinstance(leaf, Iterator):
            raise _uncopyable(policy, f"{type(leaf).__name__} objects cannot be copied")
    try:
        return copy.deepcopy(policy, shared)
    except Exception as error:
        raise _uncopyable(policy, describe_error(error)) from error


@contextmanager
def unchanged_classes(policy: Policy) -> Iterator[None]:
    """Check that a run in the context changes no attribute of the policy's own classes.

    Raises
    ------
    InvalidInputError
        If it does.
    """
    before = _class_digests(policy)
    yield
    after = _class_digests(policy)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            rule = f"must not change attributes of classes, which replications share, and changes {name}"
            raise InvalidInputError("policy", rule, policy.name)


def _uncopyable(policy: object, reason: str) -> InvalidInputError:
    rule = f"must be copyable, because each replication has a copy ({reason})"
    return InvalidInputError("policy", rule, getattr(policy, "name", policy))


def _is_copyable(value: object) -> bool:
    try:
        copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - objects of users may raise anything
        return False
    return True


def _leaves(value: object, seen: set[int]) -> Iterator[object]:
    """Yield the objects inside a value that consist of no others."""
    if id(value) in seen:
        return
    seen.add(id(value))
    parts = list(_parts(value))
    if not parts:
        yield value
    for part in parts:
        yield from _leaves(part, seen)


def _parts(value: Any) -> Iterable[object]:
    if isinstance(value, type | FunctionType | ModuleType | str | bytes):
        return ()
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values(), *attribute_values(value).values())
    if isinstance(value, list | tuple | set | frozenset):
        return (*value, *attribute_values(value).values())
    return attribute_values(value).values()


def _class_digests(policy: Policy) -> dict[str, str]:
    """Return digests of the attributes of own classes, of a policy and of policies inside it."""
    digests = {}
    for kind in type(policy).__mro__:
        if is_library(kind.__module__):
            continue
        for name, value in vars(kind).items():
            is_code = callable(value) or hasattr(value, "__get__")
            if is_code or (name.startswith("__") and name.endswith("__")):
                continue
            try:
                digests[f"{kind.__qualname__}.{name}"] = identify(name, value).digest
            except InvalidInputError:  # such as a lock
                continue
    for inner in attribute_values(policy).values():
        if isinstance(inner, Policy):
            digests |= _class_digests(inner)
    return digests
