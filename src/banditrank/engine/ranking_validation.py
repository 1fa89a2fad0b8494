"""What a surface could show at each of its revisions: a ranking that does not fit was not shown by it.

An id is signed with the secret of the store, which a back-up holds, too. After one was restored, a number
that had been given to a surface may be given to another, and ids of the first are signed as well as any.
"""

import threading
from typing import NamedTuple

from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import IssuedRanking
from banditrank.errors import UnknownRankingError
from banditrank.storage.base import Store

_MOST_REMEMBERED = 64  # revisions


class RankingShape(NamedTuple):
    """What could be shown at a revision."""

    n_user_types: int
    n_positions: int
    items: frozenset[int]  # those that were not retired, by number

    @classmethod
    def of(cls, surface: Surface) -> "RankingShape":
        """Return the shape that a definition gives."""
        return cls(len(surface.user_types), surface.n_positions, frozenset(surface.active_numbers))

    def fits(self, ticket: IssuedRanking) -> bool:
        """Return whether a ranking could be shown.

        Examples
        --------
        >>> from banditrank.storage.records import Impression, pack_ranking
        >>> shape = RankingShape.of(Surface("home", items=["a", "b", "c"], n_positions=2, retired=["b"]))
        >>> [shape.fits(IssuedRanking(Impression(1, b"", pack_ranking(0, items)), 1, 0)) for items in [(2, 0), (1, 0)]]
        [True, False]
        """
        user_type, *items = ticket.shown.numbers
        return (
            user_type < self.n_user_types and len(items) == self.n_positions and self.items.issuperset(items)
        )


class RankingValidator:
    """The shapes of a surface, read from the store and remembered.

    Parameters
    ----------
    store, number
        Where the surface is.
    revision, surface
        What it is now.
    """

    def __init__(self, store: Store, number: int, revision: int, surface: Surface) -> None:
        self._store, self._number = store, number
        self._lock = threading.Lock()
        self._shapes = {revision: RankingShape.of(surface)}

    def remember(self, revision: int, surface: Surface) -> None:
        """Take in what the surface is at a revision."""
        with self._lock:
            self._shapes[revision] = RankingShape.of(surface)
            if len(self._shapes) > _MOST_REMEMBERED:
                del self._shapes[min(self._shapes)]

    def remembers(self, revision: int) -> bool:
        """Return whether rankings of a revision can be checked without asking the store."""
        return revision in self._shapes

    def check(self, ticket: IssuedRanking) -> IssuedRanking:
        """Return a ticket, or raise an error if it is of a ranking that the surface cannot have shown."""
        shape = self._shapes.get(ticket.revision)
        if shape is None:
            definition = self._store.definition(self._number, revision=ticket.revision)
            if definition is not None:
                surface = Surface.from_definition(definition)
                self.remember(ticket.revision, surface)
                shape = RankingShape.of(surface)
        if shape is None or not shape.fits(ticket):
            raise UnknownRankingError("ranking id must be of a ranking that its surface has shown")
        return ticket
