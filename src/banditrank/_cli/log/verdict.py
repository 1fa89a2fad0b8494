"""Diagnosis of a log and its verdict, with which the output of each analysis starts."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from banditrank._cli.output import announce_compilation

if TYPE_CHECKING:
    from rich.console import Console

    from banditrank.counts import ClickCube
    from banditrank.logs import LogDiagnosis


def announce_model_compilation() -> AbstractContextManager[None]:
    """Print a line to standard error when click models are compiled."""
    return announce_compilation("estimators", "click models")


def diagnose_log(cube: "ClickCube", target: float = 0.10) -> "LogDiagnosis":
    """Return the diagnosis of a log, and announce it if click models are compiled.

    Raises
    ------
    InvalidInputError
        As for `diagnose`.
    """
    from banditrank.logs import diagnose

    with announce_model_compilation():
        return diagnose(cube, target)


def print_verdict(console: "Console", diagnosis: "LogDiagnosis") -> None:
    """Print the verdict, the findings behind it, and swaps that would tell the worth of positions."""
    console.print(diagnosis.verdict, soft_wrap=True)
    for finding in diagnosis.listed_findings():
        console.print(f"- {finding.text}", soft_wrap=True)
    if diagnosis.swaps:
        console.print(diagnosis.plan_heading, soft_wrap=True)
        for swap in diagnosis.listed_swaps():
            console.print(f"- {swap}", soft_wrap=True)
