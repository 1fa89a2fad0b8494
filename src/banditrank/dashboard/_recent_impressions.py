"""The latest impressions of a surface with their outcomes."""

from collections import Counter
from contextlib import suppress

from banditrank.dashboard._document_schemas import (
    FeedbackState,
    ImpressionDocument,
    RankingComparison,
    ShownShareDocument,
    format_timestamp,
)
from banditrank.dashboard._surface_monitor import RecentImpression, SurfaceMonitor
from banditrank.errors import StoreError
from banditrank.storage._records import DISCARDED, Impression, Outcome, pack_ranking


class RecentImpressions:
    """Documents of the latest impressions that this process issued. Not thread-safe.

    Outcomes are read from the store until they are known, and cached from then on.

    Parameters
    ----------
    monitor
        The monitor of the surface.
    """

    def __init__(self, monitor: SurfaceMonitor) -> None:
        self._monitor = monitor
        self._runtime = monitor.runtime
        self._outcomes: dict[bytes, Outcome] = {}  # by key of the impression

    def documents(self, now: float) -> list[ImpressionDocument]:
        """Return the latest impressions at a time in seconds since 1970, latest first."""
        latest = list(reversed(self._monitor.recent.copy()))
        keys = [one.impression.key for one in latest]
        outcomes = {key: self._outcomes[key] for key in keys if key in self._outcomes}
        with suppress(StoreError):  # a health check reports it
            for key in keys:
                if key not in outcomes:
                    outcome = self._runtime.store.outcome(self._runtime.surface_id, key)
                    if outcome is not None:
                        outcomes[key] = outcome
        self._outcomes = {key: outcome for key, outcome in outcomes.items() if outcome.is_final}
        return [self._document(one, outcomes.get(one.impression.key), now) for one in latest]

    def _document(self, recent: RecentImpression, outcome: Outcome | None, now: float) -> ImpressionDocument:
        document = _document(recent, outcome, now)
        arm = self._runtime.surface.arm_of_code(recent.impression.arm_code)
        if arm is not None:
            document["arm"] = arm
        return document

    def ranking_shares(
        self, rankings: list[tuple[int, ...]], *, is_equal: bool
    ) -> list[ShownShareDocument | None]:
        """Return the share of each ranking in the latest impressions of its user type; None without any.

        Parameters
        ----------
        rankings
            Item numbers of a ranking for each user type, or of one for all under equal treatment.
        is_equal
            Whether the treatment is equal.
        """
        shown: Counter[bytes] = Counter()
        for packed in self._monitor.recent_rankings.copy():
            impression = Impression(0, b"", packed)
            shown[pack_ranking(impression.user_type, impression.items)] += 1  # of all arms together
        n_user_types = len(self._runtime.surface.user_types)
        totals: Counter[int] = Counter()  # by user type
        for packed, n_impressions in shown.items():
            totals[int.from_bytes(packed[:2], "little")] += n_impressions
        shares: list[ShownShareDocument | None] = []
        for index, ranking in enumerate(rankings):
            user_types = range(n_user_types) if is_equal else [index]
            total = sum(totals[i] for i in user_types)
            n_shown = sum(shown[pack_ranking(i, ranking)] for i in user_types)
            shares.append({"share": n_shown / total, "n_rankings": total} if total else None)
        return shares


def _document(recent: RecentImpression, outcome: Outcome | None, now: float) -> ImpressionDocument:
    user_type, *items = recent.impression.numbers
    best = None if recent.best is None or user_type >= len(recent.best) else recent.best[user_type]
    feedback = _feedback_state(outcome, has_expired=now * 1000 >= recent.impression.expires_at_ms)
    return {
        "id": recent.ranking_id,
        "at": format_timestamp(recent.issued_at),
        "user_type": user_type,
        "ranking": items,
        "reason": _compare(tuple(items), best),
        "explored_items": [] if best is None else [item for item in items if item not in best],
        "feedback": feedback,
        "clicked": [] if outcome is None else [items[click.position] for click in outcome.clicks],
    }


def _feedback_state(outcome: Outcome | None, *, has_expired: bool) -> FeedbackState:
    if outcome is None or outcome == DISCARDED:
        return "unreported" if has_expired or outcome == DISCARDED else "pending"
    return "clicked" if outcome.clicks else "not-clicked"


def _compare(items: tuple[int, ...], best: tuple[int, ...] | None) -> RankingComparison | None:
    """Return how a ranking differs from the best one; None as long as that is unknown."""
    if best is None:
        return None
    if items == best:
        return "best"
    return "order" if set(items) == set(best) else "item"
