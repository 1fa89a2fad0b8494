"""Who comes, where they look and what they click: drawn from a seed, whatever they are shown."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from banditrank.checks import check_integer
from banditrank.model.problem import Problem

LATE_SHARE = 0.05
"""Of users whose report comes late."""
NEVER_SHARE = 0.02
"""Of users whose report never comes."""
LATEST = 200
"""Visits after which the latest report comes."""


class Visit(NamedTuple):
    """One user, as decided before anything is shown.

    Attributes
    ----------
    user_type
        Its number.
    pause
        Before this user comes, as a share of the mean pause.
    look
        The one position that is looked at.
    reluctance
        The user clicks the item there if its mean is larger.
    report_after
        How many visits later the report comes: 0 at once, None never.
    """

    user_type: int
    pause: float
    look: int
    reluctance: float
    report_after: int | None

    def clicks(self, mean: float) -> bool:
        """Return whether an item of a mean, looked at, is clicked."""
        return bool(self.reluctance < mean)


def users_of(world: Problem, *, seed: int, stream: int = 0) -> Iterator[Visit]:
    """Give the users of a world, one after another, without end.

    Types arrive by the world's rates, at random times. A user looks at one position by the type's
    preferences, and clicks by the item's mean. Of all reports a twentieth is late and a fiftieth is lost,
    as in life.

    Parameters
    ----------
    world
        Theirs.
    seed
        The same seed gives the same users.
    stream
        Tells apart users of one seed.

    Examples
    --------
    >>> from itertools import islice
    >>> from banditrank.model.catalog import kdd2012
    >>> first, again = (list(islice(users_of(kdd2012(), seed=1), 1000)) for _ in range(2))
    >>> first == again, sum(visit.report_after is None for visit in first)
    (True, 20)
    """
    rng = np.random.default_rng([check_integer("seed", seed, 0), stream])
    arrivals = np.cumsum(world.arrival_rates)[:-1]
    looks = np.cumsum(world.position_preferences, axis=1)[:, :-1]  # (N, K - 1)
    while True:
        who, where, reluctance, fate, lateness = rng.random(5).tolist()
        user_type = int(np.searchsorted(arrivals, who, side="right"))
        report_after: int | None = 0
        if fate < NEVER_SHARE:
            report_after = None
        elif fate < NEVER_SHARE + LATE_SHARE:
            report_after = 1 + int(lateness * LATEST)
        yield Visit(
            user_type=user_type,
            pause=float(rng.exponential()),
            look=int(np.searchsorted(looks[user_type], where, side="right")),
            reluctance=reluctance,
            report_after=report_after,
        )
