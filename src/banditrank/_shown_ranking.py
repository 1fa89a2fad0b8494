"""The ranking to show to one user, as the engine and the clients return it."""

from datetime import datetime
from typing import NamedTuple


class ShownRanking(NamedTuple):
    """A ranking to show to one user.

    Attributes
    ----------
    id
        Identifies the ranking in its feedback.
    items
        Names of the items, in order of positions.
    expires_at
        End of the attribution window; later feedback is rejected.
    """

    id: str
    items: tuple[str, ...]
    expires_at: datetime
