import pickle

import numpy as np
import pytest

from banditrank import InvalidInputError, Problem, kdd2012

GOOD = {
    "arrival_rates": [0.5, 0.5],
    "position_preferences": [[0.7, 0.3], [0.4, 0.6]],
    "item_means": [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]],
}

BAD = [
    (
        {"position_preferences": [[0.2] * 5] * 2},
        "position_preferences must have at most 3 positions, one for each of the items, got 5",
    ),
    ({"arrival_rates": [0.5, 0.6]}, "arrival_rates must sum to 1, got 1.1"),
    ({"arrival_rates": [1.0, 0.0]}, r"arrival_rates\[1\] must be positive, got 0.0"),
    ({"arrival_rates": []}, "arrival_rates must not be empty, got"),
    ({"arrival_rates": [1.0]}, "must have 1 rows, one for each of the arrival_rates, got 2"),
    ({"arrival_rates": ["a", "b"]}, "arrival_rates must hold numbers only"),
    ({"arrival_rates": [True, False]}, "arrival_rates must hold numbers only"),
    ({"arrival_rates": 1.0}, "arrival_rates must be a list of numbers, got 1.0"),
    ({"position_preferences": [[0.7, 0.2], [0.4, 0.6]]}, "of row 1 must sum to 1, got 0.8999"),
    (
        {"item_means": [[0.9, 0.5, 1.5], [0.2, 0.3, 0.8]]},
        r"item_means\[0\]\[2\] must lie in \[0, 1\], got 1.5",
    ),
    ({"item_means": [[0.9, 0.5, -0.1], [0.2, 0.3, 0.8]]}, r"must lie in \[0, 1\], got -0.1"),
    (
        {"item_means": [[0.9, np.nan, 0.1], [0.2, 0.3, 0.8]]},
        r"item_means\[0\]\[1\] must lie in \[0, 1\], got nan",
    ),
    ({"item_means": [[0.9, 0.5], [0.2]]}, "item_means must be a list of rows of equal length"),
    ({"item_means": [[], []]}, "item_means must not be empty"),
    ({"user_types": ["a", ""]}, r"user_types\[1\] must be a non-empty printable string, got ''"),
    ({"user_types": ["a", "a"]}, r"user_types\[1\] must differ from the names before it, got 'a'"),
    ({"user_types": ["a"]}, "user_types must hold 2 names, got 1"),
    ({"items": "abc"}, "items must be a list of names, got 'abc'"),
    ({"items": ["a", "b", "c\n"]}, r"items\[2\] must be a non-empty printable string"),
    ({"name": " "}, "name must be a non-empty printable string, got ' '"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_errors_name_the_field_the_rule_and_the_value(change: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        Problem(**{**GOOD, **change})
    assert "\n" not in str(caught.value)


def test_table_1_is_as_printed() -> None:
    problem = kdd2012()
    assert problem.arrival_rates.tolist() == [0.52, 0.48]
    assert problem.position_preferences.tolist() == [[0.323, 0.677], [0.416, 0.584]]
    assert problem.item_means[0].tolist() == [0.357, 0.471, 0.604, 0.808, 0.564]
    assert problem.item_means[1].tolist() == [0.247, 0.327, 0.491, 0.49, 0.303]


def test_a_problem_is_immutable() -> None:
    problem = kdd2012()
    with pytest.raises(ValueError, match="read-only"):
        problem.item_means[0, 0] = 1.0
    with pytest.raises(AttributeError):
        problem.name = "other"


def test_arguments_are_copied() -> None:
    means = np.array(GOOD["item_means"])
    problem = Problem(**{**GOOD, "item_means": means})
    means[0, 0] = 0.0
    assert problem.item_means[0, 0] == 0.9


def test_equal_problems_are_equal_and_survive_pickling() -> None:
    assert kdd2012() == kdd2012()
    assert hash(kdd2012()) == hash(kdd2012())
    assert pickle.loads(pickle.dumps(kdd2012())) == kdd2012()  # noqa: S301 - our own bytes
    assert kdd2012() != Problem(**GOOD)
