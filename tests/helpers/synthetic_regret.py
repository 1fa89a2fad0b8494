"""Synthetic regret curves."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd


def synthetic_curves(
    regret: Callable[[float], float], rounds: Sequence[int] = (1_000, 10_000, 100_000), replications: int = 8
) -> pd.DataFrame:
    """Return the curves of replications that differ by a percent from one to the next."""
    return pd.DataFrame(
        [
            (0, number, t, regret(t) * (1 + number / 100), 0.0, 0)
            for number in range(replications)
            for t in rounds
        ],
        columns=["problem", "replication", "round", "regret", "optimal_rate", "initial_rounds"],
    )


def ending_at(regret: float, **options: int) -> pd.DataFrame:
    """Return curves that grow like the logarithm and end at a regret."""
    return synthetic_curves(lambda t: regret * np.log(t) / np.log(100_000), **options)


def timed(microseconds_per_round: float, rounds: int = 1_000) -> pd.DataFrame:
    """Return the data of a timing job."""
    return pd.DataFrame(
        {"rounds": [rounds], "seconds": [microseconds_per_round * rounds / 1e6], "machine": ["ours"]}
    )
