"""Grouped commits: whatever comes in while one group is being written makes up the next.

A durable commit takes as long for a hundred entries as for one. One thread writes; all others hand over their
entries and are called back.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from banditrank.errors import BanditRankError, StoreError, StoreUnavailableError
from banditrank.storage.base import Store
from banditrank.storage.records import Change, Entry, Verdict

MOST_WAITING = 100_000
"""Entries; if the store is so far behind, feedback is refused and shown rankings are not noted."""

_LARGEST_GROUP = 2_000
_RETRY_SECONDS = 1.0  # until a store that was down is tried again without being asked

logger = logging.getLogger(__name__)

Answer: TypeAlias = Verdict | BanditRankError
Done: TypeAlias = Callable[[Answer], None]
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
    """

    def __init__(
        self, store: Store, *, learn: Callable[[Change], None], deliver: Deliver | None = None
    ) -> None:
        self._store = store
        self._learn = learn
        self.deliver = _call_back if deliver is None else deliver
        self._waiting: deque[tuple[Entry, Done | None]] = deque()
        self._unwritten: list[Entry] = []
        self._wake = threading.Condition()
        self._closing = False
        self.groups = 0  # for the metrics
        self.entries = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._write_on, name="banditrank-journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many entries are not written yet."""
        return len(self._waiting)

    def note(self, entry: Entry) -> None:
        """Hand over a ranking that was shown; nobody waits for it."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
        else:
            self._hand_over(entry, None)

    def settle(self, entry: Entry, done: Done) -> None:
        """Hand over an outcome, and be called back when it is durable or could not be written."""
        if len(self._waiting) >= MOST_WAITING:
            raise StoreUnavailableError(f"the store is {MOST_WAITING:,} entries behind")
        self._hand_over(entry, done)

    def settle_now(self, entry: Entry) -> Verdict:
        """Hand over an outcome and wait."""
        answers: list[Answer] = []
        finished = threading.Event()

        def done(answer: Answer) -> None:
            answers.append(answer)
            finished.set()

        self.settle(entry, done)
        finished.wait()
        if isinstance(answers[0], BanditRankError):
            raise answers[0]
        return answers[0]

    def close(self) -> None:
        """Write what is waiting, and stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _hand_over(self, entry: Entry, done: Done | None) -> None:
        with self._wake:
            if self._closing:
                raise StoreUnavailableError("the journal is closed")
            self._waiting.append((entry, done))
            self._wake.notify()

    def _write_on(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closing:
                    if not self._wake.wait(_RETRY_SECONDS if self._unwritten else None):
                        break  # see whether the store is back
                group = self._next_group()
            if group:
                self._write(group)
            elif self._closing:
                return

    def _next_group(self) -> list[tuple[Entry, Done | None]]:
        again = [(entry, None) for entry in self._unwritten]
        self._unwritten.clear()
        if self._closing and not self._waiting:
            self.dropped += len(again)
            return []
        return [*again, *(self._waiting.popleft() for _ in range(min(len(self._waiting), _LARGEST_GROUP)))]

    def _write(self, group: list[tuple[Entry, Done | None]]) -> None:
        answers: Sequence[Answer]
        try:
            receipt = self._store.commit([entry for entry, _ in group])
        except Exception as error:  # whatever it is, those who wait must be told
            if not isinstance(error, BanditRankError):
                logger.exception("a group of %d entries could not be written", len(group))
            answer = (
                error if isinstance(error, BanditRankError) else StoreError(f"could not write: {error!r}")
            )
            answers = [answer] * len(group)
            self._keep_for_later([entry for entry, done in group if done is None])
        else:
            answers = receipt.verdicts
            self.groups += 1
            self.entries += len(group)
            for change in receipt.changes:
                self._learn(change)
        calls = [(done, answer) for (_, done), answer in zip(group, answers, strict=True) if done is not None]
        if calls:
            self.deliver(calls)

    def _keep_for_later(self, shown: list[Entry]) -> None:
        """Keep what nobody waits for until the store is back."""
        kept = shown[: _LARGEST_GROUP - len(self._unwritten)]
        self._unwritten.extend(kept)
        self.dropped += len(shown) - len(kept)


def _call_back(calls: Sequence[tuple[Done, Answer]]) -> None:
    for done, answer in calls:
        done(answer)
