"""One surface at work in this process."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from banditrank.checks import check_number
from banditrank.dashboard.time_series import Buckets, Note
from banditrank.engine.periodic_task import PeriodicTask
from banditrank.engine.impression_expiry import ImpressionExpirer
from banditrank.engine.group_commit import COUNTED, Answer, GroupCommitter, feedback_status
from banditrank.dashboard.last_hour import HourTotals
from banditrank.engine.counts_replica import CountsReplica, SurfaceCounts
from banditrank.engine.ranking_validation import RankingValidator
from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import RandomBytes, RankingIdSigner, IssuedRanking, key_prefix
from banditrank.engine.policy_snapshot import PolicySnapshot
from banditrank.dashboard.surface_monitor import SurfaceMonitor
from banditrank.errors import InvalidInputError, ExpiredRankingError, UnknownNameError
from banditrank.storage.base import Store
from banditrank.storage.records import (
    NOT_CLICKED,
    REWARD_UNITS,
    Change,
    Event,
    Outcome,
    Impression,
    SurfaceRecord,
)

_SETTLING_SECONDS = 1.0  # after a bucket's end, until which other processes' changes are waited for


class ShownRanking(NamedTuple):
    """What to show to one user.

    Attributes
    ----------
    id
        To be given with the feedback.
    items
        In order of positions.
    expires
        When feedback is no longer accepted, in seconds since 1970.
    """

    id: str
    items: tuple[str, ...]
    expires: float


class SurfaceRuntime:
    """A surface's definition, counts and view.

    Parameters
    ----------
    record
        The surface in the store.
    store, journal, signer
        Shared by all surfaces.
    clock
        Gives the time in seconds since 1970.
    random_bytes
        Where the keys of rankings come from, and with them the randomness of policies that explore.
    watch
        Where it is noted what becomes of it.
    changed
        Called when `due_in` may be less than it was, for another reason than time.
    """

    def __init__(
        self,
        record: SurfaceRecord,
        store: Store,
        committer: GroupCommitter,
        signer: RankingIdSigner,
        clock: Callable[[], float],
        random_bytes: RandomBytes,
        monitor: SurfaceMonitor,
        changed: Callable[["SurfaceRuntime"], None] = lambda _: None,
    ) -> None:
        self.number = record.number
        self._store = store
        self._committer = committer
        self._signer = signer
        self._clock = clock
        self._random_bytes = random_bytes
        self._gone = False
        self._refusal: str | None = None  # the rule that rankings would break
        self._refreshing = threading.Lock()
        self._defined = _Defined.by(record)  # replaced as a whole: nobody sees a revision of another surface
        self.ranking_validator = RankingValidator(store, record.number, record.revision, self.surface)
        self.monitor = monitor
        self._replica = CountsReplica(store, record.number, self.surface, time_series=monitor.time_series)
        self._mark = partial(changed, self)
        self._expirer = ImpressionExpirer(
            record.number, store, committer, clock, self._replica.latest_change() / 1000, monitor, self._mark
        )
        self._view = self._new_view()
        self._viewed = time.monotonic()
        self._tasks = self._made_chores()
        self._own = self.version  # that this process knows of by itself
        if self.version > 0:
            monitor.note("service started", self._replica)
        self._mark()

    # Ask and tell

    def rank(self, user_type: str) -> ShownRanking:
        """Return a ranking to show to a user."""
        (ranking,) = self.rank_batch((user_type,))
        return ranking

    def rank_batch(self, user_types: Sequence[str]) -> list[ShownRanking]:
        """Return a ranking to show to a user of each type, all of them or none."""
        if self._refusal is not None:
            raise InvalidInputError("surface", self._refusal, self.surface.name)
        view = self.view()
        surface = view.surface
        for user_type in user_types:
            if not isinstance(user_type, str) or user_type not in view.type_numbers:
                raise UnknownNameError("user_type", user_type, surface.user_types)
        now = self._clock()
        expires_at_ms = int((now + surface.attribution_seconds) * 1000)
        made = view.rank_batch([view.type_numbers[one] for one in user_types], self._random_bytes)
        number, time_bytes = self.number, key_prefix(expires_at_ms)
        shown = [Impression(number, time_bytes + one.tail, one.ranking) for one in made]
        if surface.unreported == "not-clicked":
            for one in shown:
                self._committer.note(Event(one, None))
        ids = self._signer.sign_batch(shown, view.revision, view.version)
        monitor = self.monitor
        best, feedback_tracker = monitor.best, monitor.feedback_tracker
        monitor.latest.extend([(an_id, now, one, best) for an_id, one in zip(ids, shown, strict=True)])
        monitor.shown.extend([one.ranking for one in made])
        feedback_tracker.given[expires_at_ms >> feedback_tracker.shift] += len(shown)
        expires = expires_at_ms / 1000
        return [
            ShownRanking(ranking_id, one.names, expires) for ranking_id, one in zip(ids, made, strict=True)
        ]

    def entry(self, ticket: IssuedRanking, clicked: str | None, reward: float) -> Event:
        """Return what is to be counted for feedback, or raise an error."""
        shown = ticket.shown
        units = round(check_number("reward", reward, 0.0, 1.0) * REWARD_UNITS)
        if clicked is None:
            if reward != 1.0:
                raise InvalidInputError("reward", "must be left out without a click", reward)
            return Event(shown, NOT_CLICKED)
        items = self.surface.items
        names = [items[item] for item in shown.items]
        if clicked not in names:
            raise UnknownNameError("clicked", clicked, names)
        return Event(shown, Outcome(names.index(clicked), units))

    def told(self, entry: Event, answer: Answer) -> str:
        """Return what whoever gave feedback is told of it, or raise the error that it is."""
        if answer is COUNTED:
            self.monitor.feedback_tracker.report(entry.shown.expires_at_ms, now=self._clock())
        return feedback_status(answer)

    def has_expired(self, ticket: IssuedRanking) -> bool:
        """Return whether a ranking's attribution window has closed."""
        return self._clock() * 1000 >= ticket.shown.expires_at_ms

    def is_pruned(self, ticket: IssuedRanking) -> bool:
        """Return whether a ranking is so old that what became of it may have been thrown away."""
        return (self._clock() - self.surface.keep_seconds) * 1000 >= ticket.shown.expires_at_ms

    def check_expired(self, entry: Event) -> None:
        """Raise an error for late feedback, unless it repeats what was counted in time."""
        if self._store.outcome(self.number, entry.shown.key) != entry.outcome:
            seconds = self._clock() - entry.shown.expires_at_ms / 1000
            raise ExpiredRankingError(f"the ranking's attribution window closed {seconds:.0f} seconds ago")

    # What is known

    @property
    def surface(self) -> Surface:
        """Its definition."""
        return self._defined.surface

    @property
    def user_type_numbers(self) -> Mapping[str, int]:
        """Numbers of the user types that `rank` accepts now; one that was added follows with a refresh."""
        return self._view.type_numbers

    @property
    def revision(self) -> int:
        """Of the definition."""
        return self._defined.revision

    @property
    def version(self) -> int:
        """Of the counts in this process."""
        return self._replica.version

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted."""
        return self._gone

    @property
    def is_alone(self) -> bool:
        """Whether no other process was seen to write since this one began."""
        return self.version <= self._own

    @property
    def rounds(self) -> int:
        """How many rankings were counted, of those known in this process."""
        return self._replica.rounds

    @property
    def age(self) -> float:
        """How many seconds the counts behind rankings are behind those in this process."""
        view = self._view
        return 0.0 if view.version == self.version else time.monotonic() - self._viewed

    def view(self) -> PolicySnapshot:
        """Return what rankings are made from now."""
        if self.surface.refresh_seconds == 0 and self._is_behind():
            self.refresh()
        return self._view

    def known(self) -> SurfaceCounts:
        """Return the latest counts in this process, of all items."""
        surface, revision = self._defined
        return self._replica.known(surface, revision)

    def series(self) -> tuple[Buckets, list[Note]]:
        """Return the buckets of the series that are closed, and what happened meanwhile."""
        now = self._clock()
        with self._replica.time_series() as time_series:
            notes = [note for note in time_series.notes if note.at <= now * 1000]  # a clock may have been ahead
            return time_series.closed(int((now - _SETTLING_SECONDS) * 1000)), notes

    def last_hour(self) -> tuple[float | None, HourTotals]:
        """Return when the series began, in seconds since 1970, and what came within the last hour."""
        with self._replica.time_series() as time_series:
            totals = time_series.last_hour(int(self._clock() * 1000))
            return None if time_series.began is None else time_series.began / 1000, totals

    def refresh(self) -> None:
        """Make rankings from the latest counts from now on."""
        with self._refreshing:
            if self._is_behind():
                self._view = self._new_view()
            self._viewed = time.monotonic()

    def learn(self, change: Change) -> None:
        """Take in a change that was committed in this process."""
        self._own += 1
        if self._replica.learn(change):
            self._replica.catch_up()
        self._mark()

    def adopt(self, record: SurfaceRecord) -> None:
        """Go over to another definition; rankings follow with the next `refresh`."""
        with self._refreshing:
            if record.revision > self.revision:
                before, defined = self.surface, _Defined.by(record)
                self._defined = defined  # first: feedback of a revision that has a shape is read by it
                self.ranking_validator.remember(record.revision, defined.surface)
                self.monitor.adopt(before, self.surface, self._replica)
        self._mark()

    def catch_up(self, version: int) -> None:
        """Take in changes that were committed elsewhere, up to a version at least."""
        self._replica.reach(version)
        self._mark()

    def drop(self) -> None:
        """Make no more rankings: the surface was deleted."""
        self._gone = True
        self.refuse("must not have been deleted")

    def refuse(self, rule: str) -> None:
        """Make no more rankings: they would break a rule."""
        self._refusal = rule

    def _is_behind(self) -> bool:
        return self._view.version != self.version or self._view.revision != self.revision

    def _new_view(self) -> PolicySnapshot:
        surface, revision = self._defined
        version, counts = self._replica.counts(surface, surface.active_numbers)
        return PolicySnapshot(surface, revision, version, counts)

    # Keeping up to date

    def is_due(self) -> bool:
        """Return whether there is anything to be done by `tend`."""
        return self.due_in() <= 0.0

    def due_in(self) -> float:
        """Return the number of seconds until there is; infinity if there is not before something changes."""
        return min(task.due_in() for task in self._tasks)

    def tend(self) -> None:
        """Do what is due."""
        for task in self._tasks:
            task.tend()

    def _made_chores(self) -> tuple[PeriodicTask, ...]:
        name, keeping = f"surface {self.surface.name}", self._expirer
        return (
            PeriodicTask(f"{name} shows rankings of old counts", self._stale_in, self.refresh),
            PeriodicTask(
                f"{name} settles and forgets no rankings", keeping.due_in, lambda: keeping.tend(self.surface)
            ),
            PeriodicTask(
                f"{name} saves no snapshots", lambda: 0.0 if self._replica.is_to_save else inf, self._sum_up
            ),
            PeriodicTask(
                f"{name} is not compared with the best",
                lambda: self.monitor.due_in(self.revision, self.version),
                self._look,
            ),
        )

    def save(self) -> None:
        """Save a snapshot."""
        self._replica.save(int(self._clock() * 1000))

    def _sum_up(self) -> None:
        if not self._replica.is_summed_up():
            self.save()

    def _stale_in(self) -> float:
        """Return the number of seconds until the counts behind rankings are too old."""
        if self._view.revision != self.revision:
            return 0.0  # what was retired must not be shown any longer
        if not self._is_behind():
            return inf
        return max(0.0, self._viewed + self.surface.refresh_seconds - time.monotonic())

    def _look(self) -> None:
        self.monitor.look(self.known(), self._replica)


class _Defined(NamedTuple):
    """What a surface is at a revision."""

    surface: Surface
    revision: int

    @classmethod
    def by(cls, record: SurfaceRecord) -> "_Defined":
        return cls(Surface.from_definition(record.definition), record.revision)
