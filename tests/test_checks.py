from fractions import Fraction

import numpy as np
import pytest

from banditrank._checks import check_integer, check_number, check_workers
from banditrank.errors import InvalidInputError

NOT_A_NUMBER = [True, np.True_, "1", None, 1j, np.complex128(1), [1], np.array(1), float("nan")]


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float32(1), Fraction(1)], ids=repr)
def test_check_number_accepts_any_real_type_and_both_limits(value: float) -> None:
    for low, high in ((1, 2), (0, 1)):
        checked = check_number("share", value, low, high)
        assert (checked, type(checked)) == (1.0, float)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)], ids=repr)
def test_check_integer_accepts_any_integer_type_and_both_limits(value: int) -> None:
    for minimum, maximum in ((3, None), (3, 4), (0, 3)):
        checked = check_integer("seed", value, minimum, maximum)
        assert (checked, type(checked)) == (3, int)


@pytest.mark.parametrize("value", [*NOT_A_NUMBER, 0.999, 1000.1, float("inf")], ids=repr)
def test_check_number_rejects_other_types_and_values_out_of_range(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^share must be a number from 1 to 1,000, got "):
        check_number("share", value, 1.0, 1e3)


@pytest.mark.parametrize("value", [*NOT_A_NUMBER, 2.0, 0, 1001], ids=repr)
def test_check_integer_rejects_other_types_and_values_out_of_range(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^size must be a whole number from 1 to 1,000, got "):
        check_integer("size", value, 1, 1000)


@pytest.mark.parametrize("value", [0, -1, 1025, 10**23, 1.5, "2", True], ids=repr)
def test_check_workers_rejects_values_out_of_range(value: object) -> None:
    assert [check_workers("workers", count) for count in (1, 1024, None)] == [1, 1024, None]
    with pytest.raises(InvalidInputError, match=r"^workers must be a whole number from 1 to 1,024, got "):
        check_workers("workers", value)
