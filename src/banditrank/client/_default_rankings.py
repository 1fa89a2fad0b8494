"""Default rankings, which clients return while the service is away."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from banditrank._shown_ranking import ShownRanking
from banditrank.errors import InvalidInputError, ServiceError, one_line

logger = logging.getLogger(__name__)

IGNORED = "ignored"
"""Status of feedback for a default ranking."""

MAX_KNOWN = 1000
"""Maximum number of pairs of a surface and a user type whose last ranking is kept."""

_REFUSALS = frozenset(range(400, 500)) - {408, 429}  # errors of the caller


class _KnownRanking(NamedTuple):
    """The last ranking for a surface and a user type.

    Attributes
    ----------
    items
        Its items in order of positions, without pinned ones.
    n_positions
        Number of items in the longest ranking so far.
    """

    items: tuple[str, ...]
    n_positions: int


class DefaultRankings:
    """Default rankings from the last known ranking of each surface and user type. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _KnownRanking] = OrderedDict()
        self._lock = threading.Lock()
        self._is_away = False

    def remember(
        self,
        surface: str,
        user_types: Iterable[str],
        rankings: Iterable[ShownRanking],
        options: Mapping[str, Any],
    ) -> None:
        """Keep rankings that the service issued.

        Parameters
        ----------
        surface
            Name of the surface.
        user_types
            User type of each ranking.
        rankings
            The rankings.
        options
            Body of the request.
        """
        pinned = set((options.get("pinned") or {}).values())
        with self._lock:
            self._is_away = False
            for user_type, ranking in zip(user_types, rankings, strict=True):
                key = (surface, user_type)
                items = tuple(item for item in ranking.items if item not in pinned)
                before = self._known.get(key, _KnownRanking((), 0))
                self._known[key] = _KnownRanking(items, max(before.n_positions, len(ranking.items)))
                self._known.move_to_end(key)
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def make(
        self,
        surface: str,
        user_types: Iterable[str],
        default_order: Sequence[str],
        options: Mapping[str, Any],
        error: Exception,
    ) -> list[ShownRanking]:
        """Return a default ranking for each user type.

        Parameters
        ----------
        surface
            Name of the surface.
        user_types
            User types.
        default_order
            Items to show if no ranking is known.
        options
            Body of the request.
        error
            Why the service issued no ranking.

        Raises
        ------
        ServiceError
            The error, if the service refused the request.
        """
        if isinstance(error, ServiceError) and error.status in _REFUSALS:
            raise error
        with self._lock:
            is_first, self._is_away = not self._is_away, True
            known = [self._known.get((surface, user_type)) for user_type in user_types]
        if is_first:
            reason = one_line(error) or "the service did not respond in time"
            fields = {"surface": surface, "error": reason}
            logger.warning("default ranking returned: %s", reason, extra=fields)
        now = datetime.now(UTC)
        return [
            ShownRanking("", _default_items(one, default_order, options), now, is_default=True)
            for one in known
        ]


def _default_items(
    known: _KnownRanking | None, default_order: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the items of a default ranking.

    The known items come first, then those of the default order, then the candidates. Pinned items take their
    positions.

    Examples
    --------
    >>> options = {"exclude": ["b"], "pinned": {"1": "x"}}
    >>> _default_items(_KnownRanking(("c", "b"), 3), ["a", "b", "d"], options)
    ('x', 'c', 'a')
    """
    last, n_positions = known or _KnownRanking((), len(default_order))
    candidates = options.get("candidates") or ()
    pinned = {int(position): item for position, item in (options.get("pinned") or {}).items()}
    omitted = {*(options.get("exclude") or ()), *pinned.values()}
    allowed = set(candidates)
    items = [
        item
        for item in dict.fromkeys((*last, *default_order, *candidates))
        if item not in omitted and (not allowed or item in allowed)
    ]
    for position in sorted(pinned):
        items.insert(position - 1, pinned[position])
    return tuple(items[: max((n_positions or len(items), *pinned))])


def check_default_order(default_order: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return a default order as a tuple.

    Raises
    ------
    InvalidInputError
        If it does not consist of names.

    Examples
    --------
    >>> check_default_order(["ad-1", "ad-2"])
    ('ad-1', 'ad-2')
    >>> check_default_order("ad-1")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: default_order must be a list of different names, got 'ad-1'
    """
    if default_order is None:
        return None
    names = () if isinstance(default_order, str) else tuple(default_order)
    is_valid = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    if isinstance(default_order, str) or not is_valid:
        raise InvalidInputError("default_order", "must be a list of different names", default_order)
    return names
