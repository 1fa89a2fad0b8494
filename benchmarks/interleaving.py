"""Interleaved measurements: all alternatives take turns, because machines are noisy."""

import os
import statistics
from collections.abc import Callable

ROUNDS = int(os.environ.get("ROUNDS", "11"))


def interleave(works: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Return each work's results over the rounds, all taking turns in each."""
    results: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            results[name].append(work())
    return results


def ratio(above: list[float], below: list[float]) -> float:
    """Return the median over rounds of one side's figure over the other's."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
