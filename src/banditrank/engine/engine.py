"""All surfaces of a store, at work in this process."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from banditrank.engine.fork_guard import FORKED, guard_against_forks
from banditrank.engine.group_commit import Answer, Deliver, Done, GroupCommitter
from banditrank.engine.sync_loop import SyncLoop
from banditrank.engine.surface_runtime import SurfaceRuntime
from banditrank.engine.surface_registry import SurfaceRegistry
from banditrank.engine.due_queue import DueQueue
from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import RandomBytes, RankingIdSigner, IssuedRanking, seeded_bytes
from banditrank.engine.policy_snapshot import PolicySnapshot
from banditrank.dashboard.surface_monitor import SurfaceMonitor
from banditrank.errors import (
    InvalidInputError,
    StoreError,
    StoreUnavailableError,
    UnknownRankingError,
)
from banditrank.model.problem import Problem
from banditrank.storage.base import Store
from banditrank.storage.records import Change, Event, SurfaceRecord, CommitStatus

_MOST_ATTEMPTS = 20  # to change a definition while others change it, too

logger = logging.getLogger(__name__)

FeedbackResult: TypeAlias = str | Exception
"""Status of feedback, ``counted`` or ``repeated``, or the error that rejected it."""


class Engine:
    """Surfaces, the journal that writes for all of them, and the keeper that has them up to date.

    Parameters
    ----------
    store
        Where everything is kept. It is not closed with the engine.
    sync_seconds
        How often to look for what other processes wrote to the store.
    clock
        Gives the time in seconds since 1970.
    deliver
        How those who wait for a commit are called back; see `GroupCommitter`.
    random_bytes
        Where the randomness of rankings comes from: of their ids, and of policies that explore. One of its
        own if left out.
    bucket_seconds
        Width of the first buckets of a surface's series.
    truths
        The true worlds of surfaces whose users are simulated, by name.
    """

    def __init__(
        self,
        store: Store,
        *,
        sync_seconds: float = 0.25,
        clock: Callable[[], float] = time.time,
        deliver: Deliver | None = None,
        random_bytes: RandomBytes | None = None,
        bucket_seconds: float = 60.0,
        truths: Mapping[str, Problem] = MappingProxyType({}),
    ) -> None:
        self.store = store
        self._bucket_seconds = bucket_seconds
        self._truths = truths
        self.sync_seconds = sync_seconds
        self._clock = clock
        self._random_bytes = seeded_bytes() if random_bytes is None else random_bytes
        self._signer = RankingIdSigner(store.secret())
        self._is_copy = False
        self._schedule: DueQueue[SurfaceRuntime] = DueQueue(SurfaceRuntime.due_in)
        self._registry = SurfaceRegistry(store, self._make)
        self.committer = GroupCommitter(store, learn=self._learn, deliver=deliver, clock=clock)
        try:
            self._sync_loop = SyncLoop(
                store, self._registry, self._schedule, sync_seconds=sync_seconds, clock=clock
            )
        except BaseException:
            self.committer.close()
            raise
        guard_against_forks(self)

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._clock()

    @property
    def last_sync(self) -> float:
        """When it was last looked for what other processes wrote, by a clock that is never set."""
        return self._sync_loop.last_sync

    @property
    def unreadable(self) -> dict[str, str]:
        """What is wrong with surfaces that are not at work as they are in the store, by name."""
        return self._sync_loop.unreadable

    # Surfaces

    def surfaces(self) -> list[SurfaceRuntime]:
        """Return all surfaces, by name."""
        return self._registry.all()

    def known(self, name: str) -> SurfaceRuntime | None:
        """Return a surface if it is at work in this process, without asking the store."""
        return self._registry.known(name)

    def surface(self, name: str) -> SurfaceRuntime:
        """Return a surface, or raise an error."""
        return self._registry.find(name)

    def create(self, surface: Surface) -> SurfaceRuntime:
        """Create a surface, or raise an error if its name is taken or it cannot be ranked."""
        PolicySnapshot.check_rankable(surface)
        return self._registry.open(self.store.create_surface(surface.name, surface.definition))

    def change(self, name: str, change: Callable[[Surface], Surface]) -> SurfaceRuntime:
        """Change a surface's definition, also while others do.

        Parameters
        ----------
        name
            The surface's.
        change
            Returns what it is to become, given what it is.
        """
        for _ in range(_MOST_ATTEMPTS):
            record = self._registry.record(name)
            present = Surface.from_definition(record.definition)
            wanted = present.successor(change(present))
            live = self._registry.open(record)  # another one if it was deleted and made anew
            changed = record
            if wanted != present:
                updated = self.store.update_surface(record, wanted.definition)
                if updated is None:
                    continue
                changed = updated
            live.adopt(changed)
            live.refresh()
            return live
        raise StoreUnavailableError(f"surface {name} is being changed by others all the time")

    def delete(self, name: str) -> None:
        """Delete a surface and all that was learned, or raise an error if there is none."""
        live = self.known(name)
        if not self.store.delete_surface(name):
            raise self._registry.unknown(name)
        if live is not None:
            self._registry.drop(live)

    # Feedback

    def ticket(self, ranking_id: str) -> tuple[SurfaceRuntime, IssuedRanking]:
        """Return the surface of a ranking and what its id says, or raise an error if it was not given out."""
        ticket = self._read(ranking_id)
        live = self._registry.find_number(ticket.shown.surface)
        if ticket.revision > live.revision:  # given out by a replica that knows more items
            self._registry.renew(live)
        return live, live.ranking_validator.check(ticket)

    def known_ticket(self, ranking_id: str) -> tuple[SurfaceRuntime, IssuedRanking] | None:
        """Do what `ticket` does, but without asking the store: return None if it must be asked."""
        ticket = self._read(ranking_id)
        live = self._registry.known_number(ticket.shown.surface)
        if live is None or not live.ranking_validator.remembers(ticket.revision):
            return None
        return live, live.ranking_validator.check(ticket)

    def submit_feedback(
        self,
        ranking_id: str,
        *,
        done: Callable[[FeedbackResult], None],
        clicked: str | None = None,
        reward: float = 1.0,
        may_read_store: bool = False,
    ) -> bool:
        """Validate feedback and queue it for the next group commit, without waiting for the commit.

        Parameters
        ----------
        ranking_id
            Identifies the ranking.
        done
            Called exactly once if this returns True, by the engine's `deliver`: with ``counted`` or
            ``repeated`` once that is durable, or with the error that rejected the feedback.
        clicked
            The item that was clicked, None for none.
        reward
            Value of the click, from 0 to 1.
        may_read_store
            Whether to read the store where this process does not know enough: the ranking's surface or
            revision is not loaded here, or its attribution window has closed. Reading blocks, so an event
            loop leaves this False and repeats the call in a thread if it returned False.

        Returns
        -------
        bool
            False if the store must be read first: nothing was queued, and `done` is not called.

        Raises
        ------
        BanditRankError
            If the feedback is invalid, or cannot be queued; `done` is not called.
        """
        found = self.known_ticket(ranking_id)
        if found is None:
            if not may_read_store:
                return False
            found = self.ticket(ranking_id)
        live, ticket = found
        entry = live.entry(ticket, clicked, reward)
        if live.has_expired(ticket):
            if not may_read_store:
                return False
            live.check_expired(entry)
            self.committer.answer([(_on_commit(live, entry, done), CommitStatus.REPEATED)])
        else:
            self.committer.settle(entry, _on_commit(live, entry, done))
        return True

    def feedback(self, ranking_id: str, *, clicked: str | None = None, reward: float = 1.0) -> str:
        """Count feedback, and wait until that is durable.

        Returns
        -------
        str
            ``counted``, or ``repeated`` if the same feedback was counted before.

        Raises
        ------
        FeedbackError
            If the ranking is unknown, its window closed, or other feedback was counted for it.
        InvalidInputError
            If the item was not shown, or the reward is not from 0 to 1.
        StoreUnavailableError
            If the store cannot be written to; the same feedback may be sent again.
        """
        results: list[FeedbackResult] = []
        finished = threading.Event()

        def done(result: FeedbackResult) -> None:
            results.append(result)
            finished.set()

        self.submit_feedback(ranking_id, clicked=clicked, reward=reward, done=done, may_read_store=True)
        finished.wait()
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]

    def _read(self, ranking_id: str) -> IssuedRanking:
        if self._is_copy:  # which has no journal to wait for
            raise InvalidInputError("engine", FORKED, f"process {os.getpid()}")
        try:
            return self._signer.read(ranking_id)
        except InvalidInputError as error:
            raise UnknownRankingError(str(error)) from None

    def close(self) -> None:
        """Write what is waiting, save snapshots, and stop; in a forked process, leave that to the other."""
        if self._is_copy:
            return
        self._sync_loop.close()
        self.committer.close()
        for live in self.surfaces():
            try:
                live.save()
            except StoreError:
                logger.warning("no snapshot of surface %s was saved", live.surface.name)

    def disown(self) -> None:
        """Refuse to work: this is a copy in a process that was forked."""
        self._is_copy = True
        for live in self._registry.at_work():
            live.refuse(FORKED)

    def _make(self, record: SurfaceRecord) -> SurfaceRuntime:
        monitor = SurfaceMonitor(
            Surface.from_definition(record.definition),
            self._clock,
            bucket_seconds=self._bucket_seconds,
            problem=self._truths.get(record.name),
        )
        return SurfaceRuntime(
            record,
            self.store,
            self.committer,
            self._signer,
            self._clock,
            self._random_bytes,
            monitor,
            self._schedule.mark,
        )

    def _learn(self, change: Change) -> None:
        live = self._registry.numbered(change.surface)
        if live is not None:
            live.learn(change)


def _on_commit(live: SurfaceRuntime, entry: Event, done: Callable[[FeedbackResult], None]) -> Done:
    """Return a commit callback that calls `done` with the feedback's status or error."""

    def committed(answer: Answer) -> None:
        try:
            result: FeedbackResult = live.told(entry, answer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller waits for a result
            result = error
        done(result)

    return committed
