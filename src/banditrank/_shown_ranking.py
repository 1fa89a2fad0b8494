"""The ranking to show to one user, as the engine and the clients return it."""

from datetime import datetime
from typing import NamedTuple


class ShownRanking(NamedTuple):
    """A ranking to show to one user.

    Attributes
    ----------
    id
        Identifies the ranking in its feedback; empty for a default ranking.
    items
        Names of the items, in order of positions.
    expires_at
        End of the attribution window; later feedback is rejected. For a default ranking, the time at which it
        was returned.
    is_default
        Whether this is a default ranking, which a client returned while the service was away. Its feedback is
        ignored.
    arm
        Arm of the surface's experiment: ``policy`` for the surface's own; None without an experiment.
    ignored
        Candidates and excluded items of the request that are retired or unknown, and were ignored.
    """

    id: str
    items: tuple[str, ...]
    expires_at: datetime
    is_default: bool = False
    arm: str | None = None
    ignored: tuple[str, ...] = ()
