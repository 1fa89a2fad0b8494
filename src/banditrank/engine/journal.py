"""Grouped commits: whatever comes in while one group is being written makes up the next.

A durable commit takes as long for a hundred entries as for one. One thread writes; all others hand over their
entries and are called back.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from banditrank.errors import (
    BanditRankError,
    ContradictionError,
    LapsedRankingError,
    StoreError,
    StoreUnavailableError,
    UnknownRankingError,
)
from banditrank.storage.base import Store
from banditrank.storage.records import Change, Entry, Verdict

MOST_WAITING = 100_000
"""Entries; if the store is so far behind, feedback is refused and shown rankings are not noted."""

COUNTED = Verdict.COUNTED
"""What is asked for every time: to look a member of an enumeration up takes longer."""

SURFACE_GONE = "the surface of the ranking was deleted"
_LARGEST_GROUP = 2_000
_NOTING_SECONDS = 0.05  # after which rankings that were shown are written without an outcome to go with
_SMALL_GROUP = 16
_GATHERING_SECONDS = 0.001  # for which a small group waits for others: commits cost more than they hold
_RETRY_SECONDS = 0.25  # until a store that was down is tried again without being asked

logger = logging.getLogger(__name__)

Answer: TypeAlias = Verdict | BanditRankError
Done: TypeAlias = Callable[[Answer], None]
S = TypeVar("S")
T = TypeVar("T")
Deliver: TypeAlias = Callable[[Sequence[tuple[Done, Answer]]], None]


class Journal:
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
        self._deliver = call_back if deliver is None else deliver
        self._shown: deque[Entry] = deque()  # nobody waits for these: they go with the next group
        self._settled: deque[tuple[Entry, Done]] = deque()
        self._wake = threading.Condition()
        self._idle = False
        self._closing = False
        self._ended = False
        self.groups = 0  # for the metrics
        self.entries = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._write_on, name="banditrank-journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many entries are not written yet."""
        return len(self._shown) + len(self._settled)

    def note(self, entry: Entry) -> None:
        """Hand over a ranking that was shown; nobody waits for it."""
        if len(self._shown) < MOST_WAITING and not self._closing:
            self._shown.append(entry)
        else:
            self.dropped += 1

    def settle(self, entry: Entry, done: Done) -> None:
        """Hand over an outcome, and be called back when it is durable or could not be written."""
        if len(self._settled) >= MOST_WAITING:
            raise StoreUnavailableError(f"the store is {MOST_WAITING:,} entries behind")
        if self._closing:
            raise StoreUnavailableError("the journal is closed")
        self._settled.append((entry, done))
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
            with self._wake:
                self._idle = True
                if not self._settled and not self._closing:
                    self._wake.wait(_NOTING_SECONDS)
                self._idle = False
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

    def _write(self, shown: list[Entry], settled: list[tuple[Entry, Done]]) -> bool:
        """Write a group, and answer those who wait; return whether the store can be used."""
        entries = [*shown, *(entry for entry, _ in settled)]
        answers: Sequence[Answer]
        usable, splits = True, False
        try:
            receipt = self._store.commit(entries, at=int(self._clock() * 1000))
        except BanditRankError as error:
            usable = False
            answers = [error] * len(settled)
            self._shown.extendleft(reversed(shown))  # they go with the next group
            if not settled:
                time.sleep(_RETRY_SECONDS)
        except Exception as error:  # whatever it is, those who wait must be told
            splits = len(entries) > 1
            if not splits:
                logger.exception("an entry could not be written")
                self.dropped += len(shown)
            answers = [StoreError(f"could not write: {error!r}")] * len(settled)
        else:
            answers = receipt.verdicts[len(shown) :]
            self.groups += 1
            self.entries += len(entries)
            self._tell(receipt.changes)
        if splits:  # one of them is bad, and the others must not suffer for it
            halves = [self._write(*half) for half in _halves(shown, settled)]
            return all(halves)
        self.answer([(done, answer) for (_, done), answer in zip(settled, answers, strict=True)])
        return usable

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
        """Call back those who wait; the journal goes on whatever comes of it."""
        if calls:
            try:
                self._deliver(calls)
            except Exception:
                logger.exception("%d who wait could not be called back", len(calls))

    def _refuse_the_rest(self) -> None:
        """Answer those who came when the journal had ended; each is taken out, and answered, once."""
        while rest := _taken(self._settled):
            self.answer([(done, StoreUnavailableError("the journal is closed")) for _, done in rest])


def verdict_told(answer: Answer) -> str:
    """Return what whoever gave feedback is told, or raise the error that it is."""
    if answer is COUNTED:  # nearly always
        return "counted"
    if isinstance(answer, BanditRankError):
        raise answer
    if answer is Verdict.CONTRADICTED:
        raise ContradictionError("another feedback was counted for this ranking before")
    if answer is Verdict.FORGOTTEN:
        raise LapsedRankingError("the ranking's attribution window closed long ago")
    if answer is Verdict.GONE:
        raise UnknownRankingError(SURFACE_GONE)
    return str(answer)


def _halves(shown: list[S], settled: list[T]) -> list[tuple[list[S], list[T]]]:
    """Return a group of two or more as two.

    Examples
    --------
    >>> _halves([1, 2], ["a", "b", "c"])
    [([1, 2], []), ([], ['a', 'b', 'c'])]
    >>> _halves([], ["a", "b", "c"])
    [([], ['a']), ([], ['b', 'c'])]
    """
    if shown and settled:
        return [(shown, []), ([], settled)]
    middle = (len(shown) // 2, len(settled) // 2)
    return [(shown[: middle[0]], settled[: middle[1]]), (shown[middle[0] :], settled[middle[1] :])]


def _taken(waiting: deque[T]) -> list[T]:
    taken: list[T] = []
    try:
        while len(taken) < _LARGEST_GROUP:
            taken.append(waiting.popleft())
    except IndexError:  # there are no more, or somebody else took them
        pass
    return taken


def call_back(calls: Sequence[tuple[Done, Answer]]) -> None:
    """Call back those who wait, each whatever came of the others."""
    for done, answer in calls:
        try:
            done(answer)
        except Exception:  # the others wait, too
            logger.exception("somebody who waits could not be called back")
