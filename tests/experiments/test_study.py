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


@pytest.mark.parametrize(
    ("answers", "agreement"),
    [
        ([True, True], "agrees"),
        ([True, False], "too short to tell"),
        ([True, None], "too short to tell"),
        ([False], "too short to tell"),
        ([], "not checked"),
    ],
)
def test_a_quick_run_that_does_not_confirm_a_claim_is_too_short_to_tell(
    answers: list[bool | None], agreement: str
) -> None:
    checks = [Check("It is so.", answer, "") for answer in answers]
    assert StudyResult("", checks, is_quick=True).agreement == agreement


def test_what_a_longer_run_would_not_change_is_decided_by_a_quick_run() -> None:
    bound = Check("Regret stays below the bound.", False, "", needs_full_run=False)
    files = Check("The raw files give the values.", None, "no files", needs_full_run=False)
    holds, short = Check("It ends.", True, ""), Check("It is fast.", False, "")
    assert StudyResult("", [bound, short], is_quick=True).agreement == "disagrees"
    assert StudyResult("", [bound, short, holds], is_quick=True).agreement == "partly"
    assert StudyResult("", [files], is_quick=True).agreement == "not checked"
    mixed = StudyResult("", [bound, files, short, holds], is_quick=True)
    assert mixed.checks_summary == "1 of 4, 1 too short to tell, 1 not decided"


@pytest.mark.parametrize("holds", [True, False, None])
def test_checks_hold_plain_values_that_json_takes(holds: bool | None) -> None:  # noqa: FBT001
    given = None if holds is None else np.bool_(holds)
    check = Check("It is so.", given, "")
    assert check.holds is holds
    assert json.loads(json.dumps(check.holds)) is holds
