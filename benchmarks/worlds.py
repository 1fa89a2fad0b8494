"""Worlds with a short initial phase, so that what is measured is the policy at work."""

import numpy as np

from banditrank import Problem


def gentle_world(n_user_types: int, n_items: int, n_positions: int) -> Problem:
    """Draw a world in which every position is looked at and every item liked, at least a little."""
    rng = np.random.default_rng(0)
    return Problem(
        rng.dirichlet(np.full(n_user_types, 5.0)),
        rng.dirichlet(np.full(n_positions, 8.0), n_user_types),
        rng.uniform(0.3, 0.95, (n_user_types, n_items)),
        name=f"bench-{n_user_types}x{n_items}x{n_positions}",
    )
