"""Diagnosis of an extraction: both estimates, and what a reader of them should know."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from banditrank.logs.kdd2012._estimation import EstimatedProblem, estimated_problem
from banditrank.logs.kdd2012._extraction import USER_TYPES, Extraction


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """An extraction with both estimates.

    Attributes
    ----------
    extraction
        Counts of the two files.
    paper, likelihood
        Problems estimated by the two estimators.
    empty_cells
        User type, item and position (as numbered in the file) of each cell without an impression.
    """

    extraction: Extraction
    paper: EstimatedProblem
    likelihood: EstimatedProblem
    empty_cells: tuple[tuple[str, str, int], ...]

    def notes(self) -> list[str]:
        """Return one line for each empty cell, exclusion, clipped mean and anomaly.

        Examples
        --------
        >>> from banditrank import kdd2012
        >>> from banditrank.logs.kdd2012._extraction import extract
        >>> from banditrank.logs.kdd2012._sample_log import write_sample_log
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as directory:
        ...     log = write_sample_log(kdd2012(), directory, n_rows=2_000, seed=1)
        ...     diagnose(extract(log.training, log.profiles)).notes()
        ['every cell has displays']
        """
        cells = [f"{who} {what} at position {where}" for who, what, where in self.empty_cells]
        notes = [f"empty cells: {'; '.join(cells)}" if cells else "every cell has displays"]
        if self.paper.excluded:
            pairs = "; ".join(f"{who} {what}" for who, what in self.paper.excluded)
            notes.append(
                f"excluded from the paper's position preferences (an empty cell or no click): {pairs}"
            )
        for made in (self.paper, self.likelihood):
            if made.clipped:
                means = "; ".join(f"{who} {what} {mean:.4g}" for who, what, mean in made.clipped)
                notes.append(f"means above 1, set to 1 ({made.estimator}): {means}")
        notes += [f"{what}: {count:,}" for what, count in self.extraction.anomalies.items() if count]
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values, for JSON."""
        found = self.extraction
        return {
            "ads": list(found.ads),
            "positions": list(found.positions),
            "counts": found.counts.to_dict(),
            "rows": [asdict(group) for group in (*found.row_groups, found.total)],
            "anomalies": dict(found.anomalies),
            "ads_found": found.n_ads_found,
            "profiles_found": found.n_profiles,
            "empty_cells": [list(cell) for cell in self.empty_cells],
            "estimates": {
                made.estimator: {
                    **made.problem.to_dict(),
                    "clipped": [list(each) for each in made.clipped],
                    "excluded": [list(each) for each in made.excluded],
                }
                for made in (self.paper, self.likelihood)
            },
        }


def diagnose(extraction: Extraction) -> Diagnosis:
    """Estimate by both estimators, and find empty cells.

    Raises
    ------
    InvalidInputError
        If a user type has no impressions.
    """
    empty = np.argwhere(extraction.counts.displays == 0)  # (N, M, K)
    return Diagnosis(
        extraction,
        estimated_problem(extraction, "paper"),
        estimated_problem(extraction, "likelihood"),
        tuple((USER_TYPES[i], extraction.items[j], extraction.positions[k]) for i, j, k in empty),
    )
