"""Group commit of events: events that arrive during one commit form the next.

A durable commit takes as long for a hundred events as for one. One thread commits; other threads submit
events with a callback.
"""

import logging
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from banditrank.errors import (
    BanditRankError,
    ConflictingFeedbackError,
    ExpiredRankingError,
    StoreError,
    StoreUnavailableError,
    UnknownRankingError,
)
from banditrank.storage._base import Store
from banditrank.storage._records import Change, CommitStatus, Event

MAX_QUEUED = 100_000
"""Maximum number of queued events; beyond it feedback is rejected and impressions are dropped."""

COUNTED = CommitStatus.COUNTED
"""The usual status; looking a member of an enumeration up takes longer than a global name."""

SURFACE_DELETED = "the surface of the ranking was deleted"
_MAX_GROUP = 2_000
_IMPRESSION_SECONDS = 0.05  # after which impressions are committed without waiting for feedback
_SMALL_GROUP = 16
_GATHERING_SECONDS = 0.001  # for which a small group waits for more: a commit costs more than its events
_MAX_SPLITS_PER_SURFACE = 64  # of a rejected group; 11 find one event of 2,000
_MAX_SPLITS = 256
_RETRY_SECONDS = 0.25  # before impressions are retried if the store is down

logger = logging.getLogger(__name__)

CommitOutcome: TypeAlias = CommitStatus | BanditRankError
CommitCallback: TypeAlias = Callable[[CommitOutcome], None]
FeedbackResult: TypeAlias = str | Exception
"""Status of feedback, ``counted``, ``recorded`` or ``repeated``, or the error that rejected it."""

QueuedEvent: TypeAlias = tuple[Event, CommitCallback | None]
"""An event and its callback; None for impressions without feedback."""

T = TypeVar("T")
Deliver: TypeAlias = Callable[[Sequence[tuple[CommitCallback, CommitOutcome]]], None]


class GroupCommitter:
    """Commits events to a store, in groups.

    Parameters
    ----------
    store
        Where events are committed.
    on_change
        Called with every change that a commit made, before any callback.
    deliver
        Runs the callbacks of a group; in the committing thread by default.
    clock
        Returns the time in seconds since 1970.

    Attributes
    ----------
    groups, events
        Numbers of committed groups and events.
    dropped
        Number of impressions that were not committed because the queue was full or the store rejected them.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_change: Callable[[Change], None],
        deliver: Deliver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_change = on_change
        self._deliver = run_callbacks if deliver is None else deliver
        self._impressions: deque[Event] = deque()
        self._outcomes: deque[tuple[Event, CommitCallback]] = deque()
        self._wake = threading.Condition()
        self._is_asleep = False  # until any event is queued
        self._is_idle = False  # until an outcome is queued, or queued impressions have waited long enough
        self._is_closing = False
        self._has_ended = False
        self.groups = 0
        self.events = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="banditrank-committer", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """Number of events that are not committed yet."""
        return len(self._impressions) + len(self._outcomes)

    def add_impressions(self, events: Sequence[Event]) -> None:
        """Queue impressions without an outcome; they are dropped if the queue is full."""
        if len(self._impressions) < MAX_QUEUED and not self._is_closing:
            self._impressions.extend(events)
            if self._is_asleep:  # set before the thread checks the queues for the last time, as below
                with self._wake:
                    self._is_asleep = False
                    self._wake.notify()
        else:
            self.dropped += len(events)

    def submit(self, event: Event, callback: CommitCallback) -> None:
        """Queue an outcome; the callback is called once it is durable, or with the error.

        Raises
        ------
        StoreUnavailableError
            If the queue is full, or the committer is closed.
        """
        if len(self._outcomes) >= MAX_QUEUED:
            raise StoreUnavailableError(f"the store is {MAX_QUEUED:,} events behind")
        self.check_open()
        self._outcomes.append((event, callback))
        if self._is_idle:  # set before the thread checks the queues for the last time: no event is missed
            with self._wake:
                self._is_idle = False
                self._wake.notify()
        if self._has_ended:  # since `_is_closing` was read above
            self._reject_queued()

    def check_open(self) -> None:
        """Check that the committer is not closed.

        Raises
        ------
        StoreUnavailableError
            If it is.
        """
        if self._is_closing:
            raise StoreUnavailableError("the engine is closed")

    def close(self) -> None:
        """Commit the queued events and stop; if the store fails, the rest is rejected."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wait_for_events()
            if len(self._outcomes) < _SMALL_GROUP:
                time.sleep(_GATHERING_SECONDS)
            impressions = _take(self._impressions)
            outcomes = _take(self._outcomes)
            is_available = self._commit_group(impressions, outcomes) if impressions or outcomes else True
            if self._is_closing and not (is_available and self.queued):
                break
        self.dropped += len(self._impressions)
        self._has_ended = True
        self._reject_queued()

    def _wait_for_events(self) -> None:
        """Wait for an outcome, or for at most `_IMPRESSION_SECONDS` after the first impression.

        Only the first impression after a pause wakes the thread: under load an outcome follows soon.
        """
        with self._wake:
            self._is_idle = True
            if not (self._outcomes or self._is_closing):
                self._wake.wait(_IMPRESSION_SECONDS)
            self._is_asleep = not (self._outcomes or self._is_closing)
            if self._is_asleep:
                if not self._impressions:
                    self._wake.wait()
                    if not (self._outcomes or self._is_closing):
                        self._wake.wait(_IMPRESSION_SECONDS)
                self._is_asleep = False
            self._is_idle = False

    def _commit_group(self, impressions: list[Event], outcomes: list[tuple[Event, CommitCallback]]) -> bool:
        """Commit a group and run its callbacks; return whether the store is available.

        A group that the store rejects is split in halves, again and again, so that only the events at fault
        are rejected.
        """
        parts: list[list[QueuedEvent]] = [[*((event, None) for event in impressions), *outcomes]]
        splits: Counter[int] = Counter()
        while parts:
            part = parts.pop()
            try:
                self._commit(part)
            except StoreUnavailableError as error:
                self._postpone([event for one in (part, *reversed(parts)) for event in one], error)
                if not outcomes:
                    time.sleep(_RETRY_SECONDS)
                return False
            except Exception as error:  # noqa: BLE001 - a single event may be at fault, for any reason
                if halves := _halves(part, splits):
                    parts += reversed(halves)
                else:
                    self._reject(part, error)
        return True

    def _commit(self, queued: Sequence[QueuedEvent]) -> None:
        """Commit events together, publish the changes, and run callbacks."""
        result = self._store.commit([event for event, _ in queued], at_ms=int(self._clock() * 1000))
        self.groups += 1
        self.events += len(queued)
        self._publish(result.changes)
        self.run(
            [
                (callback, status)
                for (_, callback), status in zip(queued, result.statuses, strict=True)
                if callback
            ]
        )

    def _postpone(self, queued: Sequence[QueuedEvent], error: StoreUnavailableError) -> None:
        """Fail the outcomes with the error; queue the impressions again."""
        self._impressions.extendleft(reversed([event for event, callback in queued if callback is None]))
        self.run([(callback, error) for _, callback in queued if callback])

    def _reject(self, queued: Sequence[QueuedEvent], error: Exception) -> None:
        """Fail the outcomes with the error; drop the impressions."""
        logger.error("store rejected events", exc_info=error, extra={"n_events": len(queued)})
        outcome = error if isinstance(error, BanditRankError) else StoreError(f"event rejected: {error!r}")
        self.dropped += sum(callback is None for _, callback in queued)
        self.run([(callback, outcome) for _, callback in queued if callback])

    def _publish(self, changes: Sequence[Change]) -> None:
        """Pass committed changes on; a replica that fails to apply one reads it from the store later."""
        for change in changes:
            try:
                self._on_change(change)
            except StoreUnavailableError:
                pass  # the replica reads what it missed once the store is available
            except Exception:
                logger.exception(
                    "change was not applied",
                    extra={"surface_id": change.surface_id, "version": change.version},
                )

    def run(self, callbacks: Sequence[tuple[CommitCallback, CommitOutcome]]) -> None:
        """Deliver commit outcomes to their callbacks."""
        if callbacks:
            try:
                self._deliver(callbacks)
            except Exception:
                logger.exception("feedback callbacks failed", extra={"n_callbacks": len(callbacks)})

    def _reject_queued(self) -> None:
        """Fail the outcomes that were queued after the thread ended, each exactly once."""
        while rest := _take(self._outcomes):
            self.run([(callback, StoreUnavailableError("the engine is closed")) for _, callback in rest])


def feedback_status(outcome: CommitOutcome) -> str:
    """Return the feedback status, ``counted``, ``recorded`` or ``repeated``.

    Raises
    ------
    BanditRankError
        If the feedback was rejected.
    """
    if outcome is COUNTED:  # nearly always
        return "counted"
    if isinstance(outcome, BanditRankError):
        raise outcome
    if outcome is CommitStatus.CONFLICTING:
        raise ConflictingFeedbackError("other feedback was reported for this ranking before")
    if outcome is CommitStatus.PRUNED:
        raise ExpiredRankingError("the ranking's attribution window closed long ago")
    if outcome is CommitStatus.DELETED:
        raise UnknownRankingError(SURFACE_DELETED)
    return str(outcome)


def _surface_of(queued: QueuedEvent) -> int:
    return queued[0].impression.surface_id


def _halves(events: list[QueuedEvent], splits: Counter[int]) -> list[list[QueuedEvent]]:
    """Return rejected events in two parts, or an empty list if the limit of splits is reached.

    Events of different surfaces are split between surfaces, which isolates a surface whose events are all
    rejected in few commits. The limit bounds the number of commits if the store rejects everything.

    Parameters
    ----------
    events
        At least one.
    splits
        Number of splits of each surface; updated.
    """
    ordered = sorted(events, key=_surface_of)  # stable: the first outcome of an impression stays the first
    first, last = _surface_of(ordered[0]), _surface_of(ordered[-1])
    middle = len(ordered) // 2
    if first != last:
        inner = _surface_of(ordered[middle])
        middle = bisect_left(ordered, inner, key=_surface_of) or bisect_right(ordered, inner, key=_surface_of)
    elif len(ordered) == 1 or splits[first] >= _MAX_SPLITS_PER_SURFACE or splits.total() >= _MAX_SPLITS:
        return []
    else:
        splits[first] += 1
    return [ordered[:middle], ordered[middle:]]


def _take(queue: deque[T]) -> list[T]:
    taken: list[T] = []
    try:
        while len(taken) < _MAX_GROUP:
            taken.append(queue.popleft())
    except IndexError:  # empty, or another thread took the rest
        pass
    return taken


def run_callbacks(callbacks: Sequence[tuple[CommitCallback, CommitOutcome]]) -> None:
    """Run all callbacks, also if some of them raise."""
    for callback, outcome in callbacks:
        try:
            callback(outcome)
        except Exception:
            logger.exception("feedback callback failed")
