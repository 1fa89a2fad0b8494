"""The carousel of a music streaming service as a problem, from the files that its authors publish.

The files are those of W. Bendada, G. Salha and T. Bontempelli (2020), Carousel personalization in music
streaming apps with contextual bandits, RecSys 14: a row of weights for each playlist, and a row of features
for each user. A user streams a playlist that she looks at with the probability σ(weights · (features, 1)).
"""

import math
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError, describe_error
from banditrank.model._problem import Problem

Floats = NDArray[np.float64]

ITEM_FILE = "playlist_features.csv"
USER_FILE = "user_features_small.csv"
N_POSITIONS = 12
N_VISIBLE = 3
"""Number of positions that are visible at first; the others are behind a swipe."""

_BEHIND = 0.9  # preference of each position behind a swipe, relative to the position before it
_MAX_USERS = 1000  # each is a user type


def carousel_preferences(n_positions: int) -> Floats:
    """Return the position preferences of a carousel, of sum 1: alike where visible at first, then decreasing.

    Under the cascade model only their order matters.

    Examples
    --------
    >>> carousel_preferences(4).round(3)
    array([0.256, 0.256, 0.256, 0.231])
    """
    looks = _BEHIND ** np.maximum(np.arange(n_positions) - N_VISIBLE + 1, 0)
    return np.asarray(looks / looks.sum())


def read_carousel(directory: str | PathLike[str], *, n_positions: int = N_POSITIONS) -> Problem:
    """Return the problem of a carousel, each user of which is a user type.

    Users arrive equally often, and look as under the cascade model: from the first position on until they
    stream a playlist.

    Parameters
    ----------
    directory
        Directory with the files `ITEM_FILE`, a row of weights for each item whose last one is the bias, and
        `USER_FILE`, a row for each user with the column ``segment`` and the features. Both have a header.
    n_positions
        Number of positions.

    Raises
    ------
    InvalidInputError
        If a file cannot be read, the files do not fit each other, or there are too many users or positions.
    """
    folder = Path(directory)
    _, weights = _read_table(folder / ITEM_FILE)
    names, users = _read_table(folder / USER_FILE)
    if "segment" not in names:
        raise InvalidInputError(str(folder / USER_FILE), "must have a column segment", ", ".join(names[:5]))
    segment = names.index("segment")
    features = np.delete(users, segment, axis=1)
    if weights.shape[1] != features.shape[1] + 1:
        n_columns = features.shape[1] + 1
        rule = f"must have {n_columns} columns: a weight for each feature of {USER_FILE}, and the bias"
        raise InvalidInputError(str(folder / ITEM_FILE), rule, weights.shape[1])
    if len(users) > _MAX_USERS:
        raise InvalidInputError(str(folder / USER_FILE), f"must have at most {_MAX_USERS} users", len(users))
    n_positions = check_integer("number of positions", n_positions, 1, len(weights))
    with np.errstate(over="ignore", invalid="ignore"):
        logits = features @ weights[:, :-1].T + weights[:, -1]
        means = 1.0 / (1.0 + np.exp(-logits))
    if not np.isfinite(logits).all():
        raise InvalidInputError("carousel", "must have smaller weights or features", str(folder))
    return Problem(
        np.full(len(users), 1.0 / len(users)),
        np.tile(carousel_preferences(n_positions), (len(users), 1)),
        means,
        user_types=[f"user-{i + 1}-segment-{value:g}" for i, value in enumerate(users[:, segment])],
        items=[f"playlist-{j + 1}" for j in range(len(weights))],
        name="carousel",
    )


def _read_table(path: Path) -> tuple[list[str], Floats]:
    """Return the names of the columns, and the numbers of a CSV file."""
    try:
        if path.exists() and not path.is_file():  # a directory, or a device without an end
            raise InvalidInputError("carousel file", "must be a file", str(path))
        header, *lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InvalidInputError.from_os("carousel file", "must be readable", path, error) from None
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        rule = f"must be a CSV file with a header ({describe_error(error)})"
        raise InvalidInputError("carousel file", rule, str(path)) from None
    names = header.split(",")
    rows = []
    for number, line in enumerate(lines, start=2):
        try:
            row = [float(text) for text in line.split(",")]
        except ValueError:
            row = []
        if len(row) != len(names) or not all(map(math.isfinite, row)):
            raise InvalidInputError(f"{path} line {number}", f"must be {len(names)} numbers", line[:80])
        rows.append(row)
    if not rows:
        raise InvalidInputError("carousel file", "must have a row for each item or user", str(path))
    return names, np.array(rows)
