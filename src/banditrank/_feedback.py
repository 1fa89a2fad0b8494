"""Feedback for one ranking, as the engine and the clients take it in batches."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from banditrank.errors import InvalidInputError


class Feedback(NamedTuple):
    """Feedback of one user for a ranking.

    Attributes
    ----------
    ranking_id
        Id of the ranking.
    clicked
        The item that was clicked, or several under the click model ``position-based``; None for none.
    reward
        Value of a click, from 0 to 1. A larger one for the same item replaces it until the ranking is
        counted.
    final
        Whether to count the ranking now, with the clicks recorded before. Otherwise it is counted when its
        attribution window closes, and more clicks and rewards may follow. By default True, except for clicks
        under ``position-based``.
    """

    ranking_id: str
    clicked: str | Sequence[str] | None = None
    reward: float = 1.0
    final: bool | None = None

    @property
    def clicked_items(self) -> tuple[str, ...]:
        """The items that were clicked.

        Raises
        ------
        InvalidInputError
            If they are not names.
        """
        clicked = self.clicked
        if clicked is None:
            return ()
        if isinstance(clicked, str):
            return (clicked,)
        if not isinstance(clicked, list | tuple) or not all(isinstance(item, str) for item in clicked):
            raise InvalidInputError("clicked", "must be a name or a list of names", clicked)
        return tuple(clicked)


def check_feedback(feedback: Iterable[Feedback]) -> list[Feedback]:
    """Return feedback for several rankings as a list.

    Raises
    ------
    InvalidInputError
        If an element is not a `Feedback`.
    """
    checked = list(feedback)
    for each in checked:
        if not isinstance(each, Feedback):
            raise InvalidInputError("feedback", "must consist of Feedback tuples", each)
    return checked
