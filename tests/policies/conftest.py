"""Sizes of the conformance suite for policies."""

import pytest

from banditrank.testing import _policies


@pytest.fixture
def draws(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the checks of relabelling draw a quarter of the rankings, unless in depth.

    Two frequencies of 200 draws differ by more than 0.3 with probability below 4e-8 (Hoeffding), as do those
    of 800 by more than 0.15. A change of 0.45 is noticed with a probability above 0.98, and most policies
    have one ranking for the same counts, so that a wrong one changes a frequency by 1.
    """
    if not pytestconfig.getoption("--campaign"):
        monkeypatch.setattr(_policies, "N_DRAWS", 200)
        monkeypatch.setattr(_policies, "TOLERANCE", 0.3)
