"""Identity of objects of users: values and code count, whatever process computes it."""

import cmath
import copy
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from banditrank import Forgetful, InvalidInputError, Oracle, Policy, Problem, ThompsonRank, UCBRank, kdd2012
from banditrank._compilation import inlined
from banditrank._identity import attribute_values, identify

RATE = 0.1


def tune(value: float) -> float:
    return value * RATE


@inlined
def inner_formula(value: float) -> float:
    return value + 1.0


@inlined
def outer_formula(value: float) -> float:
    return inner_formula(value) * 2.0


class Base(Policy):
    decay = 0.5

    def rate(self) -> float:
        return tune(self.decay)


class Own(Base):
    name = "own"

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        return rng.permutation(counts.n_items)[: int(outer_formula(self.rate()))]


@dataclass(frozen=True)
class Settings:
    rate: float = 0.5
    weights: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Slotted:
    rate: float = 0.5


def closure(step: float) -> Callable[[float], float]:
    return lambda value: value + step


VALUES: list[Callable[[], Any]] = [
    *(lambda: 0, lambda: 0.0, lambda: 1e9, lambda: "0", lambda: None, lambda: False),
    *(lambda: [1, 2], lambda: (1, 2), lambda: [[1], 2], lambda: {1, 2}, lambda: {"a": 1}, lambda: {"a": 2}),
    *(
        lambda: np.arange(3),
        lambda: np.arange(3.0),
        lambda: np.arange(3).reshape(3, 1),
        lambda: np.float64(1),
    ),
    *(lambda: re.compile("a"), lambda: re.compile("b"), lambda: Path("a"), lambda: {1: 2.0}.items),
    *(lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)),
    *(lambda: closure(1.0), lambda: closure(2.0), lambda: partial(tune, 1.0), lambda: partial(tune, 2.0)),
    *(
        lambda: lambda value: value,
        lambda: lambda value: value + 1,
        lambda: tune,
        lambda: np.sqrt,
        lambda: np.log,
        lambda: math.sqrt,
        lambda: cmath.sqrt,
    ),
    *(Settings, lambda: Settings(0.25), lambda: Settings(weights=[1.0]), Slotted, lambda: Slotted(0.25)),
    *(lambda: Own(1), lambda: Own(2), lambda: UCBRank(coefficient=0.5), lambda: UCBRank(coefficient=0.25)),
    *(lambda: outer_formula, lambda: inner_formula, lambda: Own().rate, lambda: Own(1).rate),
]


def test_objects_of_other_values_or_code_have_other_digests() -> None:
    """Finding 7: parameters of any kind tell policies apart, and equal ones do not."""
    digests = [identify("policy", Own(make())).digest for make in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert digests == [identify("policy", Own(make())).digest for make in VALUES]


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys.modules[__name__], "RATE", 0.2),
        (sys.modules[__name__], "tune", lambda value: value),
        (sys.modules[__name__], "inner_formula", inlined(lambda value: value + 2.0)),
        (Base, "decay", 0.25),
        (Base, "rate", lambda self: self.decay),
        (Own, "name", "other"),
    ],
)
def test_code_that_a_class_uses_counts(
    owner: object, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 7: base classes, functions, formulas and constants that a policy uses are part of it."""
    before = identify("policy", Own())
    monkeypatch.setattr(owner, name, value)
    assert identify("policy", Own()) != before
    monkeypatch.undo()
    assert identify("policy", Own()) == before


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Yield a function that imports a module with a helper in another file, after writing both."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("identity_policy", "identity_helper")

    def load(statement: str, rate: float) -> ModuleType:
        for name in names:
            sys.modules.pop(name, None)
        (tmp_path / "identity_helper.py").write_text(f"RATE = {rate}\nOTHER = 3\n")
        (tmp_path / "identity_policy.py").write_text(statement)
        return __import__("identity_policy")

    yield load
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "source",
    [
        "import identity_helper\nclass E:\n    def f(self):\n        return identity_helper.RATE\n",
        "from identity_helper import RATE\nclass E:\n    def f(self):\n        return RATE\n",
        "class E:\n    def f(self):\n        from identity_helper import RATE\n        return RATE\n",
        "class E:\n    def f(self):\n        import identity_helper\n        return identity_helper.RATE\n",
    ],
)
def test_values_of_other_files_count(source: str, module: Callable[..., ModuleType]) -> None:
    """Finding 7: a constant that is imported from another file of the user is part of the policy."""
    before = identify("policy", module(source, 0.1).E())
    assert identify("policy", module(source, 0.1).E()) == before
    assert identify("policy", module(source, 0.2).E()) != before
    assert identify("policy", module(source + "\nUNUSED = 1\n", 0.1).E()) == before


def test_an_edit_of_the_file_counts_before_it_is_imported_again(
    module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    """Finding 7: a class whose source was edited is another one, although its old code still runs."""
    source = "class E:\n    def f(self):\n        return 1\n"
    kind = module(source, 0.1).E
    before = identify("policy", kind())
    (tmp_path / "identity_policy.py").write_text(source.replace("1", "2"))
    assert identify("policy", kind()) != before


def test_processes_agree() -> None:
    """Finding 7: a digest does not depend on the process, its hashes or its addresses."""
    program = "import test_identity as t; print([t.identify('p', t.Own(make())).digest for make in t.VALUES])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    imported = __import__("test_identity") if __name__ == "test_identity" else sys.modules[__name__]
    assert ran.stdout.strip() == str([identify("p", imported.Own(make())).digest for make in VALUES])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (threading.Lock(), "cannot pickle"),
        ((value for value in [1]), "cannot pickle"),
        ([threading.local()], "cannot pickle"),
        (np.frompyfunc(tune, 1, 1), ""),
    ],
)
def test_what_has_no_digest_is_refused(value: object, reason: str) -> None:
    """Finding 7: a parameter that cannot be digested is refused, and named."""
    with pytest.raises(InvalidInputError, match=rf"^policy\.value.* must have a digest, .*{reason}.*, got"):
        identify("policy", Own(value))
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInputError, match="it is nested too deeply"):
        identify("policy", Own(deep))


def test_only_code_of_users_is_their_own() -> None:
    """Finding 7: built-in policies are known by their parameters, unless these contain own functions."""
    built_in = [ThompsonRank(), Oracle(kdd2012()), Forgetful(UCBRank(), "window:9"), UCBRank(coefficient=0.5)]
    assert not any(identify("policy", policy).has_own_code for policy in built_in)
    assert identify("policy", UCBRank(schedule=lambda _: 1.0)).has_own_code
    assert identify("policy", Own()).has_own_code
    other = Problem([1.0], [[1.0]], [[0.5, 0.25]])
    assert identify("policy", Oracle(kdd2012())) != identify("policy", Oracle(other))


class Linked:
    """Refers to itself, after other values."""

    def __init__(self, *values: Any) -> None:
        self.values = values
        self.link = [values, {"self": self}]


def test_values_that_are_shared_are_those_that_are_equal() -> None:
    """Finding 7: whether equal values are one object or several does not count, with cycles behind them."""
    first, second = [1, 2], [1, 2]
    shared, equal = (Own([*values, Linked()]) for values in ((first, first), (first, second)))
    assert identify("policy", shared) == identify("policy", equal)


def test_modules_that_code_imports_count_by_name_before_they_are_imported() -> None:
    """Finding 7: a function that imports a module when it runs is the same before and afterwards."""
    program = (
        "import sys\n"
        "from banditrank._identity import identify\n"
        "def rank():\n"
        "    import colorsys, typer.rich_utils\n"
        "before = identify('rank', rank)\n"
        "assert not {'colorsys', 'typer'} & sys.modules.keys()\n"
        "rank()\n"
        "assert identify('rank', rank) == before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


class Unused:
    """Is copied by no test but the next."""


class Making(Own):
    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        return [vars(Unused())]


def test_attributes_that_python_adds_to_classes_do_not_count() -> None:
    """Finding 7: copying an object, which stores the names of its slots in the class, changes no digest."""
    before = identify("policy", Making())
    copy.deepcopy(Unused())
    assert "__slotnames__" in vars(Unused)
    assert identify("policy", Making()) == before


def test_values_that_an_object_derives_and_keeps_do_not_count() -> None:
    """Finding 7: a policy that was used is the same as before."""
    policy = UCBRank(coefficient=0.5)
    before = identify("policy", policy)
    assert policy.n_parameters > 0
    assert "n_parameters" in vars(policy)
    assert identify("policy", policy) == before
    assert "n_parameters" not in attribute_values(policy)
    assert attribute_values(Slotted()) == {"rate": 0.5}


class Scaled:
    """A decorator that is an object, with a factor of its own."""

    def __init__(self, factor: float) -> None:
        update_wrapper(self, tune)  # type: ignore[arg-type]
        self.factor = factor


class Private:
    __slots__ = ("__rate",)

    def __init__(self, rate: float) -> None:
        self.__rate = rate


class Seeded(np.random.RandomState):
    """Inherits the pickling of a library, whose state has the seed."""


class Prior(np.random.RandomState):
    """Has attributes that the pickling of the library leaves out."""

    def __init__(self, mean: float) -> None:
        super().__init__(0)
        self.mean = mean


@pytest.mark.parametrize("make", [Scaled, Private, Seeded, Prior])
def test_all_attributes_count_however_an_object_stores_them(make: Callable[[int], object]) -> None:
    """Attributes beside a wrapped function, in private slots, and of classes that libraries pickle, count."""
    assert identify("policy", Own(make(1))) == identify("policy", Own(make(1)))
    assert identify("policy", Own(make(1))) != identify("policy", Own(make(2)))


@pytest.mark.parametrize("statement", ["from . import helper", "from identity_package import helper"])
def test_submodules_count_before_they_are_imported(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submodule that code imports when it runs is part of it, although its package does not import it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    package = tmp_path / "identity_package"
    package.mkdir()
    source = f"def rank():\n    {statement}\n    return helper.RATE\n"
    digests = []
    for rate in (0.1, 0.1, 0.2):
        for name in [name for name in sys.modules if name.startswith("identity_package")]:
            monkeypatch.delitem(sys.modules, name)
        (package / "__init__.py").write_text(source)
        (package / "helper.py").write_text(f"RATE = {rate}\n")
        rank = __import__("identity_package").rank
        digests.append(identify("rank", rank))
        assert rank() == rate
        assert identify("rank", rank) == digests[-1]
    assert digests[0] == digests[1] != digests[2]
