"""Validation of verified ranking ids against the surface's definition.

A valid signature is not enough: after a backup is restored, the id of a deleted surface may be assigned to
another one, and ranking ids of the first still carry the store's signature.
"""

import threading
from typing import NamedTuple

from banditrank.engine._ranking_ids import IssuedRanking
from banditrank.engine._surface import Surface
from banditrank.errors import UnknownRankingError
from banditrank.model._click_models import RankOneClickModel
from banditrank.storage._base import Store
from banditrank.storage._records import arm_code_of, user_type_of

_MAX_CACHED = 64  # revisions
_NOT_SHOWN = "ranking id is of a ranking that its surface did not show"


class RankingShape(NamedTuple):
    """The rankings that a surface can show at one revision."""

    n_user_types: int
    n_positions: int
    items: frozenset[int]  # numbers of the active items
    min_positions: int
    arm_codes: frozenset[int]
    click_model: RankOneClickModel

    @classmethod
    def of(cls, surface: Surface) -> "RankingShape":
        """Return the shape of a surface's rankings."""
        min_positions = 1 if surface.allow_short_rankings else surface.n_positions
        items = frozenset(surface.active_numbers)
        codes = frozenset((0,) if surface.period is None else filter(None, surface.period.codes))
        return cls(
            len(surface.user_types), surface.n_positions, items, min_positions, codes, surface.click_model
        )

    def matches(self, issued: IssuedRanking) -> bool:
        """Return whether the surface can have shown a ranking.

        Examples
        --------
        >>> from banditrank.storage._records import Impression, pack_ranking
        >>> shape = RankingShape.of(Surface("home", items=["a", "b", "c"], n_positions=2, retired=["b"]))
        >>> impressions = [Impression(1, b"", pack_ranking(0, items)) for items in [(2, 0), (1, 0)]]
        >>> [shape.matches(IssuedRanking(impression, 1, 0)) for impression in impressions]
        [True, False]
        """
        coded_type, *items = issued.impression.coded_numbers
        has_length = self.min_positions <= len(items) <= self.n_positions
        has_user = user_type_of(coded_type) < self.n_user_types and arm_code_of(coded_type) in self.arm_codes
        return has_user and has_length and self.items.issuperset(items)


class RankingValidator:
    """Validates rankings of one surface; caches its latest revisions. Thread-safe.

    Parameters
    ----------
    store, surface_id
        Where earlier definitions of the surface are read.
    revision, surface
        Its current definition.
    """

    def __init__(self, store: Store, surface_id: int, revision: int, surface: Surface) -> None:
        self._store, self._surface_id = store, surface_id
        self._lock = threading.Lock()
        self._shapes = {revision: RankingShape.of(surface)}

    def add(self, revision: int, surface: Surface) -> None:
        """Cache the definition of a revision."""
        with self._lock:
            self._shapes[revision] = RankingShape.of(surface)
            if len(self._shapes) > _MAX_CACHED:
                del self._shapes[min(self._shapes)]

    def has_cached(self, revision: int) -> bool:
        """Return whether rankings of a revision can be validated without reading the store."""
        return revision in self._shapes

    def validate(self, issued: IssuedRanking) -> IssuedRanking:
        """Return a ranking that the surface can have shown.

        Raises
        ------
        UnknownRankingError
            If the surface cannot have shown it.
        """
        if not self._shape_at(issued.revision).matches(issued):
            raise UnknownRankingError(_NOT_SHOWN)
        return issued

    def click_model_of(self, issued: IssuedRanking) -> RankOneClickModel:
        """Return the click model that the surface had when it showed a ranking, which is valid.

        Raises
        ------
        UnknownRankingError
            If the surface had no such revision.
        """
        return self._shape_at(issued.revision).click_model

    def _shape_at(self, revision: int) -> RankingShape:
        shape = self._shapes.get(revision)
        if shape is not None:
            return shape
        definition = self._store.definition(self._surface_id, revision=revision)
        if definition is None:
            raise UnknownRankingError(_NOT_SHOWN)
        surface = Surface.from_definition(definition)
        self.add(revision, surface)
        return RankingShape.of(surface)
