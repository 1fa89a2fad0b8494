"""Posteriors of ThompsonRank that are sampled under given conditions."""

import numpy as np

from banditrank.policies._bound_posterior import PosteriorHandle


def set_rounds(handle: PosteriorHandle, rounds: float) -> None:
    """Set the rounds of the first user type, without refitting the approximation."""
    handle.rounds[0] = rounds
    handle.refit_at[0] = np.inf


def fix_preferences(handle: PosteriorHandle, preferences: np.ndarray) -> None:
    """Make every sample of the first user type have the given preferences, within 1e-9; do not refit."""
    posterior = handle.posterior()
    posterior.logits[0] = np.log(preferences)
    posterior.factors[0] = 1e10 * np.eye(preferences.size)
    handle.refit_at[0] = np.inf
