"""Verdict of a diagnosis, with which the output of each analysis starts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from banditrank.logs import Diagnosis


def print_verdict(console: "Console", diagnosis: "Diagnosis") -> None:
    """Print the verdict, and the findings behind it."""
    console.print(diagnosis.verdict, soft_wrap=True)
    for finding in diagnosis.findings:
        console.print(f"- {finding.text}", soft_wrap=True)


def format_estimate(value: float, low: float, high: float) -> str:
    """Return an estimate with its interval, or that it is not identified.

    Examples
    --------
    >>> format_estimate(0.5, 0.41234, 0.6), format_estimate(float("nan"), 0, 1)
    ('0.500 [0.412, 0.600]', 'not identified')
    """
    from math import isnan

    if isnan(value):
        return "not identified"
    if isnan(low) or isnan(high):
        return f"{value:.3f}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
