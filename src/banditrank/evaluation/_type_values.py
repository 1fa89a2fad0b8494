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
    """

    values: Floats
    variances: Floats
    largest_weights: Floats
    reason: str = ""
    by_group: Floats | None = None
