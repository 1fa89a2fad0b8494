"""Estimated values of a target for each user type, as estimators return them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class TypeValues(NamedTuple):
    """Estimated clicks per visit of each user type, shape (N,) each.

    Attributes
    ----------
    values
        Estimates; NaN where the log does not identify them.
    variances
        Their variances.
    largest_weights
        By how much one more click could increase a value: the last parameter of a gamma interval.
    reason
        Why some are not identified; empty if all are.
    by_group
        Values on each group of folds alone, shape (G, N), whose weighted mean is the value; None if groups
        were pooled.
    changes
        For a learned target: what the choice of its rankings adds to the variance, as
        `banditrank.evaluation._learned_choice.changes_of_groups` returns it, shape (G, G, N).
    """

    values: Floats
    variances: Floats
    largest_weights: Floats
    reason: str = ""
    by_group: Floats | None = None
    changes: Floats | None = None

    @property
    def total_variances(self) -> Floats:
        """Variances with those of the choice of learned rankings, shape (N,)."""
        if self.changes is None:
            return self.variances
        of_choice = np.einsum("ghn,hgn->n", self.changes, self.changes)
        return np.asarray(self.variances + np.maximum(of_choice, 0.0))

    def variance_of_sum(self, weights: Floats) -> float:
        """Return the variance of a weighted sum of the values.

        Parameters
        ----------
        weights
            Weight of each type, shape (N,). The choice of a ranking for all types makes values dependent.
        """
        variance = float(weights**2 @ self.variances)
        if self.changes is None:
            return variance
        changes = self.changes @ weights
        return variance + max(float((changes * changes.T).sum()), 0.0)
