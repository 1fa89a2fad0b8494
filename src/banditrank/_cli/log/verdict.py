"""Verdict of a diagnosis, with which the output of each analysis starts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from banditrank.logs import LogDiagnosis


def print_verdict(console: "Console", diagnosis: "LogDiagnosis") -> None:
    """Print the verdict, the findings behind it, and swaps that would tell the worth of positions."""
    console.print(diagnosis.verdict, soft_wrap=True)
    for finding in diagnosis.listed_findings():
        console.print(f"- {finding.text}", soft_wrap=True)
    if diagnosis.swaps:
        console.print(f"To know the worth of positions to ±{diagnosis.target:.0%}:")
        for swap in diagnosis.listed_swaps():
            console.print(f"- {swap}", soft_wrap=True)
