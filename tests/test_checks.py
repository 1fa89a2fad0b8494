from fractions import Fraction

import numpy as np
import pytest

from banditrank.checks import check_number, check_integer, check_workers
from banditrank.errors import InvalidInputError

NONE_AT_ALL = [True, np.True_, "1", None, 1j, np.complex128(1), [1], np.array(1), float("nan")]


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float32(1), Fraction(1)], ids=repr)
def test_any_kind_of_number_is_taken_its_limits_included(value: float) -> None:
    for low, high in ((1, 2), (0, 1)):
        checked = check_number("share", value, low, high)
        assert (checked, type(checked)) == (1.0, float)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)], ids=repr)
def test_any_kind_of_whole_number_is_taken_its_limits_included(value: int) -> None:
    for least, most in ((3, None), (3, 4), (0, 3)):
        checked = check_integer("seed", value, least, most)
        assert (checked, type(checked)) == (3, int)


@pytest.mark.parametrize("value", [*NONE_AT_ALL, 0.999, 1000.1, float("inf")], ids=repr)
def test_what_is_no_number_within_the_limits_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^share must be a number from 1 to 1,000, got "):
        check_number("share", value, 1.0, 1e3)


@pytest.mark.parametrize("value", [*NONE_AT_ALL, 2.0, 0, 1001], ids=repr)
def test_what_is_no_whole_number_within_the_limits_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^size must be a whole number from 1 to 1,000, got "):
        check_integer("size", value, 1, 1000)


@pytest.mark.parametrize("value", [0, -1, 1025, 10**23, 1.5, "2", True], ids=repr)
def test_a_number_of_workers_that_no_machine_has_is_refused(value: object) -> None:
    assert [check_workers("workers", count) for count in (1, 1024, None)] == [1, 1024, None]
    with pytest.raises(InvalidInputError, match=r"^workers must be a whole number from 1 to 1,024, got "):
        check_workers("workers", value)
