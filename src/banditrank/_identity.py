"""Identity of objects of users: a digest of their values and of the code that they run.

Results of a simulation belong to a policy, and those of a changed policy must not be taken for them. A digest
covers an object's attributes, the code of its class and of the classes that it derives from, and, as far as
this code refers to them, functions, module variables and variables of enclosing functions. Code is bytecode,
which classes of notebooks and interactive sessions have as well. Of classes the source text counts, too,
where there is one, so that edits after the import do.

This package, the standard library, NumPy and Numba are identified by names alone; results state the version
of this package. Other installed packages are identified by names and versions, except those that define the
object's own class. What code reads at run time from files, the environment or by constructed names is not
covered.
"""

import copyreg
import dis
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any, TypeAlias

import numpy as np

from banditrank.errors import InvalidInputError, describe_error

_Parts: TypeAlias = list[tuple[str, object]]  # values inside a value; the texts lead to them in errors
_LIBRARIES = frozenset({"banditrank", "builtins", "numpy", "numba", "llvmlite", *sys.stdlib_module_names})
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_CONTENTS: dict[type, Callable[[Any], Iterable[object]]] = {  # what objects of some classes consist of
    **dict.fromkeys((set, frozenset), iter),
    **dict.fromkeys((dict, MappingProxyType), lambda value: chain.from_iterable(value.items())),
    np.ndarray: lambda value: (value.shape, value.ravel().tolist()),  # of objects
    CodeType: attrgetter(
        *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags"),
        *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable", "co_consts"),
    ),
    CellType: lambda value: (
        () if value == CellType() else (value.cell_contents,)
    ),  # empty if not assigned yet
    BuiltinFunctionType: attrgetter("__module__", "__name__", "__self__"),
    MethodType: attrgetter("__func__", "__self__"),
    property: attrgetter("fget", "fset", "fdel"),
    **dict.fromkeys((staticmethod, classmethod), lambda value: (value.__func__,)),
    cached_property: lambda value: (value.func,),
}
_UNUSED_BY_CODE = frozenset(  # attributes of classes; Python adds some of them when they are first needed
    {
        *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__firstlineno__"),
        *("__static_attributes__", "__annotations__", "__annotate__", "__annotate_func__"),
        *("__annotations_cache__", "__parameters__", "__orig_bases__", "__type_params__", "__match_args__"),
        *("__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl"),
        "__slotnames__",
    }
)
_STATE_METHODS = ("__reduce_ex__", "__reduce__", "__getstate__")
_WRAPPED = ("py_func", "__wrapped__")  # the functions of formulas of Numba and of wrappers of functools
_PACKAGE_DIRECTORIES = frozenset({"site-packages", "dist-packages"})
_FORMULA_SUFFIX = ".py_func"  # `banditrank._compilation` adds it to names of formulas


@dataclass(frozen=True, slots=True)
class Identity:
    """Digest of an object.

    Parameters
    ----------
    digest
        Equal for objects of the same values and code, in all processes with the same Python.
    has_own_code
        Whether it contains code that is neither part of this package nor of its libraries.
    """

    digest: str
    has_own_code: bool


def identify(field: str, value: object) -> Identity:
    """Return the identity of an object.

    Raises
    ------
    InvalidInputError
        If an attribute has no digest, such as an open file or a lock.

    Examples
    --------
    >>> identify("rates", [0.5, 1.0]) == identify("rates", [0.5, 1.0])
    True
    >>> identify("rate", 0.5) == identify("rate", 0.25)
    False
    """
    walk = _Walk(value)
    try:
        digest = walk.digest(value, field)
    except RecursionError:
        raise _unidentifiable(field, "it is nested too deeply", value) from None
    return Identity(digest.hex(), walk.has_own_code)


def is_library(module: object) -> bool:
    """Return whether a module is part of this package, the standard library, NumPy or Numba.

    Examples
    --------
    >>> is_library("banditrank.policies"), is_library("my_policies"), is_library(None)
    (True, False, False)
    """
    return str(module).partition(".")[0] in _LIBRARIES


def attribute_values(value: object) -> dict[str, Any]:
    """Return the attributes of an object, by name; without values that it derives from others and keeps."""
    state: Any = object.__getstate__(value)  # a dictionary, a pair of it and that of slots, or None
    parts = state if isinstance(state, tuple) else (state,)
    values = {name: each for part in parts for name, each in (part or {}).items()}
    return {name: values[name] for name in sorted(values) if not _is_derived(type(value), name)}


def _is_derived(kind: type, name: str) -> bool:
    """Return whether an attribute follows from others: it may be there or not."""
    if isinstance(getattr(kind, name, None), cached_property):
        return True
    if not is_library(kind.__module__) or not is_dataclass(kind):
        return False
    return any(each.name == name and not each.compare for each in fields(kind))


def _unidentifiable(field: str, reason: str, value: object) -> InvalidInputError:
    rule = f"must have a digest, to tell saved results of other parameters apart ({reason})"
    return InvalidInputError(field, rule, value)


class _Walk:
    """Digests of an object and all that it refers to."""

    def __init__(self, root: object) -> None:
        kind = root if isinstance(root, type) else type(root)
        self._root_packages = {each.__module__.partition(".")[0] for each in kind.__mro__}
        self._digests: dict[int, tuple[object, bytes]] = {}  # with the objects: ids are those of living ones
        self._depth = 0  # tells what a cycle returns to, however many objects are shared
        self.has_own_code = False

    def digest(self, value: Any, path: str) -> bytes:
        """Return the digest of a value, which has a name for errors."""
        kind = type(value)
        if kind in _PLAIN:
            return _hash(kind.__name__, repr(value).encode())
        is_array = isinstance(value, np.ndarray | np.generic) and kind.__module__ == "numpy"
        if is_array and not value.dtype.hasobject:
            return _hash(f"array {value.dtype.str} {value.shape}", value.tobytes())
        if id(value) in self._digests:
            return self._digests[id(value)][1]
        self._digests[id(value)] = value, _hash("cycle", str(self._depth).encode())
        self._depth += 1
        try:
            parts = self._parts(value)
        except RecursionError:
            raise
        except Exception as error:  # objects of users may raise anything
            raise _unidentifiable(path, describe_error(error), value) from error
        digests = [self.digest(part, path + name) for name, part in parts]
        if kind in (set, frozenset):
            digests.sort()
        self._depth -= 1
        self._digests[id(value)] = value, _hash(kind.__name__, *digests)
        return self._digests[id(value)][1]

    def _parts(self, value: Any) -> _Parts:
        """Return the values that a value consists of."""
        kind = type(value)
        if kind in (tuple, list):
            return [(f"[{index}]", each) for index, each in enumerate(value)]
        if kind in _CONTENTS:
            return _unnamed(_CONTENTS[kind](value))
        if isinstance(value, type | FunctionType | ModuleType):
            return self._code_parts(value)
        for name in _WRAPPED if is_library(kind.__module__) else ():
            if isinstance(function := getattr(value, name, None), FunctionType):
                return _unnamed((function, getattr(value, "targetoptions", None)))
        return _object_parts(value)

    def _code_parts(self, value: type | FunctionType | ModuleType) -> _Parts:
        library = self._library(value.__name__ if isinstance(value, ModuleType) else value.__module__)
        if isinstance(value, ModuleType):
            file = getattr(value, "__file__", None)
            return _unnamed([library or (value.__name__ if file is None else Path(file).read_bytes())])
        if library is not None:
            own = _captured(value) if isinstance(value, FunctionType) else []
            return [*_unnamed((library, value.__qualname__.removesuffix(_FORMULA_SUFFIX))), *own]
        return self._function_parts(value) if isinstance(value, FunctionType) else _class_parts(value)

    def _function_parts(self, value: FunctionType) -> _Parts:
        codes, variables = list(_nested_codes(value.__code__)), value.__globals__
        names = {name for code in codes for name in code.co_names}
        parts = _unnamed((value.__name__, value.__code__, value.__defaults__, value.__kwdefaults__))
        parts += [*_captured(value), *_named(vars(value))]
        for name in sorted({name for code in codes for name in _variable_names(code)} & variables.keys()):
            parts += self._used_parts(f".{name}", variables[name], names)
        imports = sorted({name for code in codes for name in _module_names(code)})
        package = str(variables.get("__package__") or "")
        modules = {name: self._library(name) or _import(name, package) for name in imports}
        for name, module in modules.items():  # submodules are variables of packages now
            parts += self._used_parts(f".{name}", module, names)
        return parts

    def _used_parts(self, path: str, value: object, names: set[str]) -> _Parts:
        """Return a value or, of a module of users, what code that contains names uses of it."""
        if not isinstance(value, ModuleType) or self._library(value.__name__) is not None:
            return [(path, value)]
        parts: _Parts = []
        for name in sorted(names & vars(value).keys()):
            parts += self._used_parts(f"{path}.{name}", vars(value)[name], names - {name})
        return parts or [(path, value)]

    def _library(self, module: str | None) -> str | None:
        """Return the name of a module whose code is identified by names; None for code of users."""
        if is_library(module):
            return module
        self.has_own_code = True
        package = str(module).partition(".")[0]
        installed = None if package in self._root_packages else _installed_version(package)
        return None if installed is None else f"{module} {installed}"


def _hash(kind: str, *contents: bytes) -> bytes:
    """Return the digest of something with contents, whose boundaries count."""
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.digest()


def _unnamed(values: Iterable[object]) -> _Parts:
    return [("", value) for value in values]


def _named(values: Mapping[str, object]) -> _Parts:
    """Return values and their names, in the order of the names."""
    names = sorted(values)
    return [("", names), *((f".{name}", values[name]) for name in names)]


def _object_parts(value: Any) -> _Parts:
    """Return the parts that pickle makes an object of; pickling by a library leaves out attributes."""
    kind = type(value)
    reduce = copyreg.dispatch_table.get(kind)
    reduced: str | tuple[Any, ...] = value.__reduce_ex__(4) if reduce is None else reduce(value)
    if isinstance(reduced, str):
        return _unnamed((value.__module__, reduced))  # the name of a variable
    function, arguments, state, members, entries, *_ = (*reduced, None, None, None)
    parts = _unnamed((kind, function, arguments, members and list(members), entries and list(entries)))
    methods, defaults = ({getattr(each, name) for name in _STATE_METHODS} for each in (kind, object))
    modules = {getattr(method, "__module__", "builtins") for method in methods - defaults}
    is_default = reduce is None and modules <= {"dataclasses"}
    if not is_default:
        parts.append(("", state))
    if is_default or (not is_library(kind.__module__) and all(map(is_library, modules))):
        parts += _named(attribute_values(value))
    return parts


def _class_parts(value: type) -> _Parts:
    members = {name: each for name, each in vars(value).items() if name not in _UNUSED_BY_CODE}
    return [*_unnamed((value.__name__, type(value), *value.__bases__, _source_text(value))), *_named(members)]


def _source_text(kind: type) -> str | None:
    """Return the present source text of a class; None without a file."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError, SyntaxError):
        return None


def _captured(value: FunctionType) -> _Parts:
    """Return the variables of enclosing functions that a function uses."""
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    return [(f".{name}", cell) for name, cell in cells]


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield code, and that of the functions and classes that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _variable_names(code: CodeType) -> Iterator[str]:
    """Yield the names of the module variables that code refers to."""
    for each in dis.get_instructions(code):
        if "GLOBAL" in each.opname or each.opname == "LOAD_NAME":
            yield each.argval


def _module_names(code: CodeType) -> Iterator[str]:
    """Yield the names of what code imports when it runs, which may be modules."""
    instructions = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
    for level, members, each in zip(instructions, instructions[1:], instructions[2:], strict=False):
        if each.opname == "IMPORT_NAME":
            name = "." * level.argval + each.argval  # as import_module takes it
            yield name
            yield from (f"{name.removesuffix('.')}.{member}" for member in members.argval or ())


def _import(name: str, package: str) -> ModuleType | None:
    """Return a module that code of a package imports; None if there is none."""
    try:
        return import_module(name, package)
    except Exception:  # noqa: BLE001 - code that is run later may catch it
        return None


@cache
def _installed_version(package: str) -> str | None:
    """Return the version of a package in a directory of installed packages; None if it is elsewhere."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None or _PACKAGE_DIRECTORIES.isdisjoint(Path(spec.origin or "").parts):
        return None
    return " ".join(version(each) for each in sorted(set(packages_distributions().get(package, ()))))
