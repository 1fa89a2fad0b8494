"""The latest rankings that were given out here, and what became of them."""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime

from banditrank.dashboard.document_schemas import FeedbackState, RecentDocument, ShownDocument, Why
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.dashboard.surface_monitor import RecentImpression
from banditrank.errors import StoreError
from banditrank.storage.base import Store
from banditrank.storage.records import DISCARDED, Outcome, pack_ranking


class RecentImpressions:
    """Tells of a surface's latest rankings; asks the store for each outcome until there is one.

    Parameters
    ----------
    live
        The surface.
    store
        What knows the outcomes.
    """

    def __init__(self, live: SurfaceRuntime, store: Store) -> None:
        self._live = live
        self._store = store
        self._outcomes: dict[bytes, Outcome] = {}

    def documents(self, now: float) -> list[RecentDocument]:
        """Return the latest rankings, the latest first, as of a time in seconds since 1970."""
        latest = [RecentImpression(*one) for one in reversed(self._live.monitor.latest.copy())]
        keys = [one.shown.key for one in latest]
        known = {key: self._outcomes[key] for key in keys if key in self._outcomes}
        with suppress(StoreError):  # then they wait; that the store is down is told elsewhere
            for key in keys:
                if key not in known and (outcome := self._store.outcome(self._live.number, key)) is not None:
                    known[key] = outcome
        self._outcomes = known
        return [_document(one, known.get(one.shown.key), now) for one in latest]

    def shares_shown(self, choices: list[tuple[int, ...]], *, equal: bool) -> list[ShownDocument | None]:
        """Return the share of each choice among the latest rankings of its type; None if there are none.

        The latest are of all types together, so there may be few or none of one.

        Parameters
        ----------
        choices
            A ranking for each type, or one for all types under equal treatment.
        equal
            Whether it is for all types.
        """
        shown = Counter(self._live.monitor.shown.copy())
        n_user_types = len(self._live.surface.user_types)
        by_type: Counter[int] = Counter()
        for ranking, number in shown.items():
            by_type[int.from_bytes(ranking[:2], "little")] += number
        shares: list[ShownDocument | None] = []
        for place, choice in enumerate(choices):
            types = range(n_user_types) if equal else [place]
            total = sum(by_type[i] for i in types)
            ours = sum(shown[pack_ranking(i, choice)] for i in types)
            shares.append({"share": ours / total, "of": total} if total else None)
        return shares


def _document(latest: RecentImpression, outcome: Outcome | None, now: float) -> RecentDocument:
    user_type, *items = latest.shown.numbers
    best = None if latest.best is None or user_type >= len(latest.best) else latest.best[user_type]
    feedback = _feedback(outcome, lapsed=now * 1000 >= latest.shown.expires_at_ms)
    return {
        "id": latest.id,
        "at": format_time(latest.at),
        "type": user_type,
        "ranking": items,
        "why": _why(tuple(items), best),
        "tried": [] if best is None else [item for item in items if item not in best],
        "feedback": feedback,
        "item": items[outcome.position] if outcome is not None and feedback == "clicked" else None,
    }


def _feedback(outcome: Outcome | None, *, lapsed: bool) -> FeedbackState:
    if outcome is None or outcome == DISCARDED:
        return "unreported" if lapsed or outcome == DISCARDED else "waiting"
    return "none" if outcome.position < 0 else "clicked"


def _why(items: tuple[int, ...], best: tuple[int, ...] | None) -> Why:
    """Return how a ranking compares with what was best; before anything was, it tries items."""
    if items == best:
        return "best"
    return "order" if best is not None and set(items) == set(best) else "item"


def format_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as it is told.

    Examples
    --------
    >>> format_time(1e9)
    '2001-09-09T01:46:40.000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
