"""Small files of the form in which a carousel is published."""

from pathlib import Path

import numpy as np

from banditrank.model._carousel import ITEM_FILE, USER_FILE

N_USERS, N_ITEMS, N_FEATURES = 3, 15, 4


def write_carousel(directory: Path) -> Path:
    """Write the files of a small carousel to a new or existing directory, and return it."""
    rng = np.random.default_rng(1)
    features = [f"dim_{number}" for number in range(N_FEATURES + 1)]
    weights = np.hstack([rng.normal(0.0, 0.5, (N_ITEMS, N_FEATURES)), rng.normal(-3.0, 1.0, (N_ITEMS, 1))])
    users = np.hstack([np.arange(N_USERS)[:, None], rng.standard_normal((N_USERS, N_FEATURES))])
    directory.mkdir(exist_ok=True)
    for name, header, table in (
        (ITEM_FILE, features, weights),
        (USER_FILE, ["segment", *features[:-1]], users),
    ):
        np.savetxt(directory / name, table, delimiter=",", header=",".join(header), comments="")
    return directory
