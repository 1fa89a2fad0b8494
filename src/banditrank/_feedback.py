"""Feedback for one ranking, as the engine and the clients take it in batches."""

from typing import NamedTuple


class Feedback(NamedTuple):
    """Feedback of one user for a ranking.

    Attributes
    ----------
    ranking_id
        Id of the ranking.
    clicked
        The item that was clicked, None for none.
    reward
        Value of the click, from 0 to 1.
    """

    ranking_id: str
    clicked: str | None = None
    reward: float = 1.0
