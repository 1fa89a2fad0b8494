"""Import of objects from the user's modules, by import path ``MODULE:NAME``."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from banditrank.errors import InvalidInputError, UnknownNameError, describe_error


def is_import_path(text: str) -> bool:
    """Return whether a text is meant as an import path.

    Examples
    --------
    >>> is_import_path("my_module:MyPolicy"), is_import_path("ucb-rank")
    (True, False)
    """
    return ":" in text


def add_current_directory() -> None:
    """Let modules of the current directory be imported, as ``python -m`` does.

    Processes that run replications inherit the search path, and import the same modules.
    """
    here = os.getcwd()  # noqa: PTH109 - entries of the search path are strings
    if here not in sys.path:
        sys.path.insert(0, here)


def import_object(field: str, path: str, is_wanted: Callable[[object], bool], what: str) -> Any:
    """Import the object of an import path.

    Parameters
    ----------
    field
        Name of the argument, for errors.
    path
        Import path ``MODULE:NAME``.
    is_wanted
        Whether an object is of the required kind.
    what
        The required kind, in words.

    Raises
    ------
    UnknownNameError
        If the module has no such object; lists those that it has.
    InvalidInputError
        If the path is malformed, the module is missing or fails, or the object is of another kind.

    Examples
    --------
    >>> import_object("number", "math:pi", lambda found: isinstance(found, float), "a number")
    3.141592653589793
    >>> import_object("number", "math:sin", lambda found: isinstance(found, float), "a number")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: number must be a number, which sin of math is not, got 'math:sin'
    """
    module_name, _, name = path.partition(":")
    is_dotted = all(part.isidentifier() for part in module_name.split("."))
    if not is_dotted or not name.isidentifier():
        raise InvalidInputError(field, "must be an import path MODULE:NAME", path)
    module = _import_module(field, module_name, path)
    if not hasattr(module, name):
        wanted = [
            f"{module_name}:{each}"
            for each, found in vars(module).items()
            if not each.startswith("_") and is_wanted(found) and _is_defined_in(module, found)
        ]
        if wanted:
            raise UnknownNameError(field, path, wanted)
        raise InvalidInputError(field, f"must be {what}, and {module_name} has none", path)
    found = getattr(module, name)
    if not is_wanted(found):
        raise InvalidInputError(field, f"must be {what}, which {name} of {module_name} is not", path)
    return found


def _import_module(field: str, name: str, path: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            rule = f"must be in a module that can be imported ({describe_error(error)})"
            raise InvalidInputError(field, rule, path) from error
        rule = f"must be in a module of the current directory or installed, and there is no {error.name}"
        raise InvalidInputError(field, rule, path) from None
    except Exception as error:
        rule = f"must be in a module that can be imported ({describe_error(error)})"
        raise InvalidInputError(field, rule, path) from error


def _is_defined_in(module: ModuleType, found: object) -> bool:
    """Return whether an object is the module's own, and not a class or function that it imports."""
    is_named = isinstance(found, type) or callable(found)
    return not is_named or getattr(found, "__module__", module.__name__) == module.__name__
