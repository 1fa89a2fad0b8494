"""The agreement is computed from the checks."""

import json

import numpy as np
import pytest

from banditrank.experiments._study import Check, StudyResult


@pytest.mark.parametrize(
    ("answers", "agreement"),
    [
        ([True], "agrees"),
        ([True, True], "agrees"),
        ([True, None], "partly"),
        ([True, False], "partly"),
        ([True, False, None], "partly"),
        ([False], "disagrees"),
        ([False, None], "disagrees"),
        ([None], "not checked"),
        ([], "not checked"),
    ],
)
def test_the_agreement_follows_from_the_checks(answers: list[bool | None], agreement: str) -> None:
    checks = [Check("It is so.", answer, "") for answer in answers]
    assert StudyResult("", checks).agreement == agreement
    apart = Check("It is fast.", holds=False, evidence="", claimed_by="implementation")
    assert StudyResult("", [*checks, apart]).agreement == agreement


@pytest.mark.parametrize("holds", [True, False, None])
def test_checks_hold_plain_values_that_json_takes(holds: bool | None) -> None:  # noqa: FBT001
    given = None if holds is None else np.bool_(holds)
    check = Check("It is so.", given, "")
    assert check.holds is holds
    assert json.loads(json.dumps(check.holds)) is holds
