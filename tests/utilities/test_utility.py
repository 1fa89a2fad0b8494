import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditrank import MAXIMIN, NASH, UTILITARIAN, InvalidInputError, Utility, alpha_fair, ramp, sigmoid
from banditrank.utilities._utility import as_utility

VALUES = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=4)


@given(values=VALUES, alpha=st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]))
def test_built_in_utilities_follow_their_formula(values: list[float], alpha: float) -> None:
    weights = np.full(len(values), 1 / len(values))
    expected = [math.log(v) if alpha == 1 else v ** (1 - alpha) / (1 - alpha) for v in values]
    assert alpha_fair(alpha).collective(weights, values) == pytest.approx(np.mean(expected))
    assert MAXIMIN.collective(weights, values) == min(values)


def test_a_type_without_weight_does_not_count() -> None:
    assert NASH.collective([1.0, 0.0], [0.5, 0.0]) == pytest.approx(math.log(0.5))
    assert MAXIMIN.collective([1.0, 0.0], [0.5, 0.0]) == 0.5


def test_the_pole_of_the_logarithm_is_minus_infinity() -> None:
    assert NASH.collective([0.5, 0.5], [0.5, 0.0]) == -math.inf
    assert alpha_fair(2).collective([0.5, 0.5], [0.5, 0.0]) == -math.inf


def test_a_function_is_evaluated_whether_it_compiles_or_not() -> None:
    table = {"power": 2}  # a dictionary of the caller's: cannot be compiled

    def uncompilable(value: float) -> float:
        return value ** table["power"]

    for function in (lambda value: value**2, uncompilable):
        utility = Utility.from_function(function, shape="non-concave", name="squares")
        assert utility.evaluate([0.0, 0.5, 1.0]) == pytest.approx([0.0, 0.25, 1.0])
        assert utility.collective([0.5, 0.5], [0.2, 0.8]) == pytest.approx(0.34)


@pytest.mark.parametrize(
    ("function", "shape", "message"),
    [
        (lambda u: -u, "linear", "must not decrease"),
        (lambda u: u * u, "concave", "must be concave as declared"),
        (lambda u: u**0.5, "linear", "must be linear as declared"),
        (lambda u: math.inf if u > 0.5 else u, "non-concave", "must be finite on"),
        (lambda u: {}[u], "non-concave", "must return a number .*KeyError"),
        (lambda u: u, "convex", "utility shape must be one of"),
        ("u", "linear", "must be callable"),
    ],
)
def test_a_function_that_is_not_as_declared_is_rejected(function: object, shape: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Utility.from_function(function, shape=shape)


def test_utilities_by_name() -> None:
    assert as_utility("utilitarian") is UTILITARIAN
    assert as_utility("alpha:1") is NASH
    assert str(as_utility("alpha:2.5")) == "alpha:2.5"
    assert as_utility(NASH) is NASH
    with pytest.raises(InvalidInputError, match="utility must be a Utility or the name of one, got 2"):
        as_utility(2)
    with pytest.raises(InvalidInputError, match=r"did you mean maximin\?"):
        as_utility("maxmin")
    for name in ("alpha:", "alpha:x", "alpha:-1", "alpha:inf", "alpha:nan"):
        with pytest.raises(InvalidInputError, match="alpha"):
            as_utility(name)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"lipschitz": 0.5}, "lipschitz must be at least"),
        ({"lipschitz": -1.0}, "lipschitz must be a number from 0"),
        ({"derivative": lambda u: 2 * u}, "utility derivative must be that of the function"),
        ({"derivative": lambda u: math.nan}, "utility derivative must be finite"),  # noqa: ARG005
        ({"derivative": lambda u: u.missing}, "utility derivative must return a number"),
    ],
)
def test_slopes_that_contradict_the_function_are_rejected(keywords: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Utility.from_function(math.sqrt, shape="concave", **keywords)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sigmoid(0.0, 0.3), "steepness must be a number from 1e-06 to 1,000,000, got 0.0"),
        (lambda: ramp(0.4, 0.2), r"end must exceed begin \(0.4\)"),
        (lambda: as_utility("sigmoid:20"), "utility must be one of"),
        (lambda: as_utility("ramp:a:b"), "utility must be ramp with numbers after colons"),
    ],
)
def test_invalid_sigmoids_and_ramps_are_rejected(make: Callable, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
