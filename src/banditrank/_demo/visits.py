"""Simulated visits, drawn from a seed independently of the rankings shown."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from banditrank._checks import check_integer
from banditrank.model._problem import Problem

LATE_SHARE = 0.05
"""Share of visits whose feedback is late."""
LOST_SHARE = 0.02
"""Share of visits whose feedback is lost."""
MAX_REPORT_DELAY = 200
"""Maximum delay of late feedback, in visits."""


class Visit(NamedTuple):
    """One simulated visit.

    Attributes
    ----------
    user_type
        Index of the user type.
    relative_interval
        Time since the previous visit, relative to its mean.
    examined_position
        The one position that the user examines.
    click_threshold
        The user clicks the examined item if its mean is higher.
    report_delay
        Number of visits after which the feedback arrives: 0 for at once, None for never.
    """

    user_type: int
    relative_interval: float
    examined_position: int
    click_threshold: float
    report_delay: int | None

    def clicks(self, mean: float) -> bool:
        """Return whether the user clicks an examined item of this mean."""
        return bool(self.click_threshold < mean)


def generate_visits(problem: Problem, *, seed: int, stream: int = 0) -> Iterator[Visit]:
    """Yield an endless sequence of visits.

    User types arrive by the problem's rates at random times. A user examines one position by the type's
    preferences and clicks by the item's mean. A twentieth of all feedback is late, and a fiftieth is lost.

    Parameters
    ----------
    problem
        Problem to draw visits from.
    seed
        The same seed gives the same visits.
    stream
        Selects one of several independent sequences of a seed.

    Raises
    ------
    InvalidInputError
        If the seed is not a whole number of at least 0.

    Examples
    --------
    >>> from itertools import islice
    >>> from banditrank.model._catalog import kdd2012
    >>> first, again = (list(islice(generate_visits(kdd2012(), seed=1), 1000)) for _ in range(2))
    >>> first == again, sum(visit.report_delay is None for visit in first)
    (True, 20)
    """
    rng = np.random.default_rng([check_integer("seed", seed, 0), stream])
    arrivals = np.cumsum(problem.arrival_rates)[:-1]
    examinations = np.cumsum(problem.position_preferences, axis=1)[:, :-1]  # (N, K - 1)
    while True:
        for_type, for_position, click_threshold, for_report, for_delay = rng.random(5).tolist()
        user_type = int(np.searchsorted(arrivals, for_type, side="right"))
        report_delay: int | None = 0
        if for_report < LOST_SHARE:
            report_delay = None
        elif for_report < LOST_SHARE + LATE_SHARE:
            report_delay = 1 + int(for_delay * MAX_REPORT_DELAY)
        yield Visit(
            user_type=user_type,
            relative_interval=float(rng.exponential()),
            examined_position=int(np.searchsorted(examinations[user_type], for_position, side="right")),
            click_threshold=click_threshold,
            report_delay=report_delay,
        )
