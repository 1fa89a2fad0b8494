"""Grouped commits: whatever comes in while one group is being written makes up the next.

A durable commit takes as long for a hundred entries as for one. One thread writes; all others hand over their
entries and are called back.
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
from banditrank.storage.base import Store
from banditrank.storage.records import Change, Event, CommitStatus

MAX_QUEUED = 100_000
"""Entries; if the store is so far behind, feedback is refused and shown rankings are not noted."""

COUNTED = CommitStatus.COUNTED
"""What is asked for every time: to look a member of an enumeration up takes longer."""

SURFACE_DELETED = "the surface of the ranking was deleted"
_LARGEST_GROUP = 2_000
_NOTING_SECONDS = 0.05  # after which rankings that were shown are written without an outcome to go with
_SMALL_GROUP = 16
_GATHERING_SECONDS = 0.001  # for which a small group waits for others: commits cost more than they hold
_MAX_SPLITS_PER_SURFACE = 64  # of a rejected group; 11 find one event of 2,000
_MAX_SPLITS = 256
_RETRY_SECONDS = 0.25  # until a store that was down is tried again without being asked

logger = logging.getLogger(__name__)

Answer: TypeAlias = CommitStatus | BanditRankError
Done: TypeAlias = Callable[[Answer], None]
QueuedEvent: TypeAlias = tuple[Event, Done | None]
"""An entry and its commit callback; None for rankings that are noted."""

T = TypeVar("T")
Deliver: TypeAlias = Callable[[Sequence[tuple[Done, Answer]]], None]


class GroupCommitter:
    """Writes entries to a store, in groups.

    Parameters
    ----------
    store
        Where to.
    learn
        Called with every change that a commit made, before anybody is told of it.
    deliver
        Calls back those who wait, a group at a time; in the journal's thread if left out.
    clock
        Gives the time in seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        *,
        learn: Callable[[Change], None],
        deliver: Deliver | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._clock = clock
        self._learn = learn
        self._deliver = run_callbacks if deliver is None else deliver
        self._shown: deque[Event] = deque()  # nobody waits for these: they go with the next group
        self._settled: deque[tuple[Event, Done]] = deque()
        self._wake = threading.Condition()
        self._asleep = False  # until any entry comes
        self._idle = False  # until an outcome comes, or rankings noted have waited for long enough
        self._closing = False
        self._ended = False
        self.groups = 0  # for the metrics
        self.events = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._write_on, name="banditrank-journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many entries are not written yet."""
        return len(self._shown) + len(self._settled)

    def note(self, event: Event) -> None:
        """Hand over a ranking that was shown; nobody waits for it."""
        if len(self._shown) < MAX_QUEUED and not self._closing:
            self._shown.append(event)
            if self._asleep:  # set before the thread looks for entries the last time, as below
                with self._wake:
                    self._asleep = False
                    self._wake.notify()
        else:
            self.dropped += 1

    def settle(self, event: Event, done: Done) -> None:
        """Hand over an outcome, and be called back when it is durable or could not be written."""
        if len(self._settled) >= MAX_QUEUED:
            raise StoreUnavailableError(f"the store is {MAX_QUEUED:,} entries behind")
        if self._closing:
            raise StoreUnavailableError("the journal is closed")
        self._settled.append((event, done))
        if self._idle:  # set before the thread looks for entries the last time: none is overlooked
            with self._wake:
                self._idle = False  # once is enough
                self._wake.notify()
        if self._ended:  # since it was asked whether it is closing
            self._refuse_the_rest()

    def close(self) -> None:
        """Write what is waiting, and stop; also if the store fails, in which case the rest is not written."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _write_on(self) -> None:
        while True:
            self._wait_for_entries()
            if len(self._settled) < _SMALL_GROUP:
                time.sleep(_GATHERING_SECONDS)
            shown = _taken(self._shown)
            settled = _taken(self._settled)
            written = self._write(shown, settled) if shown or settled else True
            if self._closing and not (written and self.waiting):
                break
        self.dropped += len(self._shown)
        self._ended = True
        self._refuse_the_rest()

    def _wait_for_entries(self) -> None:
        """Wait for an outcome; from the first ranking noted on, for `_NOTING_SECONDS` at most."""
        with self._wake:
            self._asleep = self._idle = True
            if not (self._settled or self._shown or self._closing):
                self._wake.wait()
            self._asleep = False
            if not (self._settled or self._closing):
                self._wake.wait(_NOTING_SECONDS)
            self._idle = False

    def _write(self, shown: list[Event], settled: list[tuple[Event, Done]]) -> bool:
        """Write a group and call back; return whether the store is available.

        A group that the store rejects is written in ever smaller parts, so that only the events at fault are
        rejected.
        """
        parts: list[list[QueuedEvent]] = [[*((event, None) for event in shown), *settled]]
        splits: Counter[int] = Counter()
        while parts:
            part = parts.pop()
            try:
                self._commit(part)
            except StoreUnavailableError as error:
                self._postpone([event for one in (part, *reversed(parts)) for event in one], error)
                if not settled:
                    time.sleep(_RETRY_SECONDS)
                return False
            except Exception as error:  # noqa: BLE001 - whatever it is, a single event may be at fault
                if halves := _halves(part, splits):
                    parts += reversed(halves)
                else:
                    self._reject(part, error)
        return True

    def _commit(self, events: Sequence[QueuedEvent]) -> None:
        """Commit events together, take in the changes, and call back; or raise if nothing was written."""
        result = self._store.commit([event for event, _ in events], at=int(self._clock() * 1000))
        self.groups += 1
        self.events += len(events)
        self._tell(result.changes)
        self.answer(
            [(done, status) for (_, done), status in zip(events, result.statuses, strict=True) if done]
        )

    def _postpone(self, events: Sequence[QueuedEvent], error: StoreUnavailableError) -> None:
        """Fail the feedback with the error; queue the rankings that are noted again."""
        self._shown.extendleft(reversed([event for event, done in events if done is None]))
        self.answer([(done, error) for _, done in events if done])

    def _reject(self, events: Sequence[QueuedEvent], error: Exception) -> None:
        """Fail the feedback with the error; drop the rankings that are noted."""
        logger.error("store rejected events", exc_info=error, extra={"n_events": len(events)})
        answer = error if isinstance(error, BanditRankError) else StoreError(f"event rejected: {error!r}")
        self.dropped += sum(done is None for _, done in events)
        self.answer([(done, answer) for _, done in events if done])

    def _tell(self, changes: Sequence[Change]) -> None:
        """Tell of changes; they are durable, and who fails to take one in now will find it in the store."""
        for change in changes:
            try:
                self._learn(change)
            except StoreUnavailableError:
                pass  # it reads what it missed when the store can be read again
            except Exception:
                logger.exception("change %d of surface %d was not taken in", change.version, change.surface)

    def answer(self, calls: Sequence[tuple[Done, Answer]]) -> None:
        """Deliver commit results to their callbacks."""
        if calls:
            try:
                self._deliver(calls)
            except Exception:
                logger.exception("feedback callbacks failed", extra={"n_callbacks": len(calls)})

    def _refuse_the_rest(self) -> None:
        """Answer those who came when the journal had ended; each is taken out, and answered, once."""
        while rest := _taken(self._settled):
            self.answer([(done, StoreUnavailableError("the journal is closed")) for _, done in rest])


def feedback_status(answer: Answer) -> str:
    """Return what whoever gave feedback is told, or raise the error that it is."""
    if answer is COUNTED:  # nearly always
        return "counted"
    if isinstance(answer, BanditRankError):
        raise answer
    if answer is CommitStatus.CONFLICTING:
        raise ConflictingFeedbackError("another feedback was counted for this ranking before")
    if answer is CommitStatus.PRUNED:
        raise ExpiredRankingError("the ranking's attribution window closed long ago")
    if answer is CommitStatus.DELETED:
        raise UnknownRankingError(SURFACE_DELETED)
    return str(answer)


def _surface_of(event: QueuedEvent) -> int:
    return event[0].shown.surface


def _halves(events: list[QueuedEvent], splits: Counter[int]) -> list[list[QueuedEvent]]:
    """Return rejected events in two parts, or nothing if the limit of splits is reached.

    Events of different surfaces are split between surfaces, which isolates a surface whose events are all
    rejected in few commits. The limit bounds the number of commits if the store rejects everything.

    Parameters
    ----------
    events
        At least one.
    splits
        Number of splits of each surface; updated.
    """
    ordered = sorted(events, key=_surface_of)  # stable: the first outcome of a ranking stays the first
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


def _taken(waiting: deque[T]) -> list[T]:
    taken: list[T] = []
    try:
        while len(taken) < _LARGEST_GROUP:
            taken.append(waiting.popleft())
    except IndexError:  # there are no more, or somebody else took them
        pass
    return taken


def run_callbacks(calls: Sequence[tuple[Done, Answer]]) -> None:
    """Call back those who wait, each whatever came of the others."""
    for done, answer in calls:
        try:
            done(answer)
        except Exception:  # the others wait, too
            logger.exception("somebody who waits could not be called back")
