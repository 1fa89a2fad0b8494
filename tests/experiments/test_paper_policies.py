"""Reports name policies as the command line does."""

import pytest

from banditrank.experiments._paper_policies import POLICIES
from banditrank.experiments._synthetic.sweep import EQUAL, PERSONALIZED
from banditrank.experiments._table2.analysis import LABELS
from banditrank.experiments._table2.sweep import ROWS
from banditrank.policies._base import Policy, policy_label

TABLE_2 = {LABELS[row]: policy for row, policy in ROWS.items()}


@pytest.mark.parametrize("policies", [POLICIES, {**PERSONALIZED, **EQUAL}, TABLE_2])
def test_names_are_labels_without_the_coefficient(policies: dict[str, Policy]) -> None:
    assert policies
    for name, policy in policies.items():
        description = policy.describe()
        assert policy_label(description).replace(f"-{description['coefficient']:g}", "") == name
