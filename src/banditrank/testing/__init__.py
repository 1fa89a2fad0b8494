"""Conformance suites for policies, solvers, stores and click models."""

from typing import TYPE_CHECKING

from banditrank._lazy import lazy_exports

if TYPE_CHECKING:
    from banditrank.testing._certificates import find_certificate_error
    from banditrank.testing._click_models import CLICK_MODEL_CHECKS
    from banditrank.testing._leaks import assert_no_leaks
    from banditrank.testing._policies import POLICY_CHECKS
    from banditrank.testing._solvers import SOLVER_CHECKS, SolverUnderTest
    from banditrank.testing._stores import STORE_CHECKS

__all__ = [
    "CLICK_MODEL_CHECKS",
    "POLICY_CHECKS",
    "SOLVER_CHECKS",
    "STORE_CHECKS",
    "SolverUnderTest",
    "assert_no_leaks",
    "find_certificate_error",
]

if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "_certificates": ("find_certificate_error",),
            "_click_models": ("CLICK_MODEL_CHECKS",),
            "_leaks": ("assert_no_leaks",),
            "_policies": ("POLICY_CHECKS",),
            "_solvers": (
                "SOLVER_CHECKS",
                "SolverUnderTest",
            ),
            "_stores": ("STORE_CHECKS",),
        },
    )
