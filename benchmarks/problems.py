"""Problems with a short initial phase, so that benchmarks measure learning."""

import numpy as np

from banditrank import Problem


def easy_problem(n_user_types: int, n_items: int, n_positions: int) -> Problem:
    """Return a random problem without small preferences or means."""
    rng = np.random.default_rng(0)
    return Problem(
        rng.dirichlet(np.full(n_user_types, 5.0)),
        rng.dirichlet(np.full(n_positions, 8.0), n_user_types),
        rng.uniform(0.3, 0.95, (n_user_types, n_items)),
        name=f"bench-{n_user_types}x{n_items}x{n_positions}",
    )
