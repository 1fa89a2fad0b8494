"""Simulated click logs as CSV files: a row for each display."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helpers.simulated_logs import make_log_problem, simulate_visits

SEGMENTS = ("new", "returning")
PROBLEM = make_log_problem(2, n_items=5, n_positions=3)
"""Problem of the simulated logs."""


def write_csv_log(path: Path, types: NDArray, items: NDArray, clicks: NDArray) -> Path:
    """Write visits to a file with the columns date, session, segment, item, slot and clicked; return it.

    Parameters
    ----------
    path
        File to write.
    types
        Index of the user type of each visit, shape (n,).
    items, clicks
        Item at each position, −1 for none, and whether it was clicked, shape (n, K).
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["date", "session", "segment", "item", "slot", "clicked"])
        for n, (user_type, shown, clicked) in enumerate(zip(types, items, clicks, strict=True)):
            day = f"2026-03-{1 + n * 4 // len(types):02d}"
            for k in np.flatnonzero(np.asarray(shown) >= 0):
                cells = (SEGMENTS[user_type], f"item-{shown[k] + 1}", k + 1, int(clicked[k]))
                rows.writerow([day, n, *cells])
    return path


def write_sample_csv(path: Path, n_visits: int = 3000, seed: int = 5) -> Path:
    """Write a log of random rankings with position-based clicks; return its path."""
    visits = simulate_visits(PROBLEM, "uniform", n_visits, "position-based", np.random.default_rng(seed))
    return write_csv_log(path, visits.user_type, visits.items, visits.clicks)
