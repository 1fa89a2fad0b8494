"""Observer of a surface: issued rankings, changes of counts, definitions and snapshots."""

from collections.abc import Sequence
from typing import NamedTuple

from banditrank.engine._surface import Surface
from banditrank.storage._records import Change, Impression


class IssuedImpression(NamedTuple):
    """An impression and the ranking id under which it was issued."""

    ranking_id: str
    impression: Impression


class SurfaceObserver:
    """Receives the events of one surface; every method does nothing unless overridden.

    Methods are called by the thread that ranks, commits or syncs, some of them with a lock held: they
    must return quickly, must not raise, and must not call the surface.
    """

    def on_rankings(self, issued: Sequence[IssuedImpression], issued_at: float) -> None:
        """Handle rankings that this process issued, at a time in seconds since 1970."""

    def on_change(self, change: Change) -> None:
        """Handle a change of the counts; changes arrive in order of versions, possibly with gaps."""

    def on_definition(self, before: Surface, after: Surface) -> None:
        """Handle a new definition of the surface."""

    def on_snapshot(self) -> None:
        """Save data of the observer's own: a snapshot of the counts is about to be saved.

        Raises
        ------
        StoreError
            If the data cannot be saved; the snapshot is then not saved either.
        """
