"""One surface, loaded and learning in this process."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple

from banditrank._checks import check_number
from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.counts._counts import Counts
from banditrank.engine._allowed_items import ALL_ITEMS, AllowedItems, ignored_items
from banditrank.engine._compilations import Compilations
from banditrank.engine._counts_replica import CountsReplica, SurfaceCounts
from banditrank.engine._experiment_results import ExperimentResults, experiment_results
from banditrank.engine._feedback_tracker import FeedbackTracker
from banditrank.engine._group_commit import (
    COUNTED,
    CommitOutcome,
    FeedbackResult,
    GroupCommitter,
    feedback_status,
)
from banditrank.engine._impression_expiry import ImpressionExpirer
from banditrank.engine._observers import IssuedImpression, SurfaceObserver
from banditrank.engine._periodic_task import PeriodicTask
from banditrank.engine._policy_snapshot import ArmSnapshots, PolicySnapshot, PreparedRanking
from banditrank.engine._ranking_ids import IssuedRanking, RandomBytes, RankingIdSigner, key_prefix
from banditrank.engine._ranking_validation import RankingValidator
from banditrank.engine._surface import Surface
from banditrank.errors import ExpiredRankingError, InvalidInputError, UnknownNameError, UnknownSurfaceError
from banditrank.storage._base import Store
from banditrank.storage._records import (
    NOT_CLICKED,
    REWARD_UNITS,
    Change,
    Click,
    Event,
    Impression,
    Outcome,
    SurfaceRecord,
)

# Items × positions; preparing rankings of more takes milliseconds.
_MAX_FAST_SIZE = 20_000


class SurfaceRuntime:
    """A surface's definition, counts and policy, with the tasks that keep them up to date. Thread-safe.

    Parameters
    ----------
    record
        The surface in the store.
    store, committer, signer
        Shared by all surfaces.
    clock
        Returns the time in seconds since 1970.
    random_bytes
        Source of the nonces of impressions, and of the randomness of exploring policies.
    observe
        Returns the surface's observer, given the loaded surface.
    is_idle
        Returns whether the engine is unused; nothing is scanned then.
    on_due
        Called when `due_in` may have decreased for another reason than time.
    compilations
        Tracks the compilation of the policy; shared by all surfaces.

    Attributes
    ----------
    surface_id
        Id of the surface in the store.
    validator
        Validates ranking ids.
    feedback_tracker
        Counts this process's impressions that wait for feedback.
    observer
        Receives what happens to the surface.
    """

    def __init__(
        self,
        record: SurfaceRecord,
        store: Store,
        committer: GroupCommitter,
        signer: RankingIdSigner,
        clock: Callable[[], float],
        random_bytes: RandomBytes,
        *,
        observe: Callable[["SurfaceRuntime"], SurfaceObserver] = lambda _: SurfaceObserver(),
        is_idle: Callable[[], bool] = lambda: False,
        on_due: Callable[["SurfaceRuntime"], None] = lambda _: None,
        compilations: Compilations | None = None,
    ) -> None:
        self.surface_id = record.surface_id
        self.store = store
        self.observer = SurfaceObserver()  # until the surface is loaded
        self._committer = committer
        self._signer = signer
        self._clock = clock
        self._random_bytes = random_bytes
        self._compilations = Compilations() if compilations is None else compilations
        self._is_deleted = False
        self._refusal: str | None = None  # the rule that rankings would break
        self._refresh_lock = threading.Lock()
        self._current = _Definition.of(record)  # replaced as a whole: surface and revision always agree
        self.validator = RankingValidator(store, record.surface_id, record.revision, self.surface)
        self.feedback_tracker = FeedbackTracker(self.surface.attribution_seconds)
        self._before_guarantees: tuple[tuple[int, int, int], Counts] | None = None
        self._replica = CountsReplica(store, record.surface_id, self.surface, on_change=self._observe)
        self._mark_due = partial(on_due, self)
        self._expirer = ImpressionExpirer(
            record.surface_id,
            store,
            committer,
            lambda: self.feedback_tracker,
            clock=clock,
            reached=self._replica.last_committed_at_ms() / 1000,
            is_idle=is_idle,
            on_due=self._mark_due,
        )
        self._snapshots = self._new_snapshot()
        with self._compilations.track(self.surface.name):
            self._snapshots.load_candidates_code()
        self._restricted = _restricted_kinds(self._snapshots.running)
        self._refreshed_at = time.monotonic()
        self._tasks = self._make_tasks()
        self._own_version = self.version  # version that this process's own commits explain
        self.observer = observe(self)  # before tasks are scheduled: if it fails, none run
        self._mark_due()

    # Rankings and feedback

    def rank(self, user_type: str, *, visitor: str | None = None, **allowed: Any) -> ShownRanking:
        """Return a ranking to show to a user.

        Parameters
        ----------
        user_type
            User type of the user.
        visitor
            Id of the visitor, who stays in the same arm of an experiment; by default the arm is chosen by
            chance.
        allowed
            ``candidates``, ``exclude`` and ``pinned``, as for `AllowedItems.of`.

        Raises
        ------
        UnknownNameError
            If the surface has no such user type or pinned item.
        UnknownSurfaceError
            If the surface was deleted.
        InvalidInputError
            If there are too few candidates, a pin is not valid, a policy cannot restrict its rankings, the
            visitor id is not valid, or this is a forked process.
        """
        (ranking,) = self.rank_batch((user_type,), visitors=(visitor,), **allowed)
        return ranking

    def rank_batch(
        self, user_types: Sequence[str], *, visitors: Sequence[str | None] | None = None, **allowed: Any
    ) -> list[ShownRanking]:
        """Return a ranking for a user of each type, all of them or none.

        Parameters
        ----------
        user_types
            User type of each user.
        visitors
            Id of each visitor, or None, as for `rank`.
        allowed
            As for `rank`, for all users.

        Raises
        ------
        UnknownNameError, UnknownSurfaceError, InvalidInputError
            As for `rank`.
        """
        if self._is_deleted:
            raise UnknownSurfaceError("surface", self.surface.name, ())
        if self._refusal is not None:
            raise InvalidInputError("surface", self._refusal, self.surface.name)
        snapshots = self._latest_snapshots()
        snapshot = snapshots.policy
        surface, numbers = snapshot.surface, snapshot.user_type_numbers
        for user_type in user_types:
            if not isinstance(user_type, str) or user_type not in numbers:
                raise UnknownNameError("user_type", user_type, surface.user_types)
        now = self._clock()
        expires_at_ms = int((now + surface.attribution_seconds) * 1000)
        chosen = [numbers[one] for one in user_types]
        arms = self._arms_of(snapshots, len(chosen), visitors)
        encoded_items = b""
        if allowed and (allowed_items := AllowedItems.of(surface, **allowed)) != ALL_ITEMS:
            for arm in dict.fromkeys(arms):
                arm.check_restrictable(**{name: value for name, value in allowed.items() if value})
            prepared = _by_arm(
                arms, chosen, lambda arm, types: arm.rank_allowed(types, allowed_items, self._random_bytes)
            )
            encoded_items = allowed_items.encode(len(surface.items))
            self._restricted |= _restricted_kinds(arms)
        elif snapshots.has_one_arm:
            prepared = snapshot.rank_batch(chosen, self._random_bytes)
        else:
            prepared = _by_arm(arms, chosen, lambda arm, types: arm.rank_batch(types, self._random_bytes))
        surface_id, prefix = self.surface_id, key_prefix(expires_at_ms)
        impressions = [Impression(surface_id, prefix + one.nonce, one.ranking) for one in prepared]
        if surface.unreported == "not-clicked":
            self._committer.add_impressions([Event(one, None) for one in impressions])
        ranking_ids = self._signer.sign_batch(impressions, snapshot.revision, snapshot.version, encoded_items)
        tracker = self.feedback_tracker
        slot = expires_at_ms >> tracker.shift
        if slot not in tracker.issued:
            self._mark_due()  # when the window closes
        tracker.issued[slot] += len(impressions)
        self.observer.on_rankings(list(map(IssuedImpression, ranking_ids, impressions)), now)
        expires_at = datetime.fromtimestamp(expires_at_ms / 1000, UTC)
        listed = {name: allowed[name] for name in ("candidates", "exclude") if name in allowed}
        ignored = ignored_items(surface, **listed) if listed else ()
        return [
            ShownRanking(ranking_id, one.items, expires_at, arm=arm.arm_name, ignored=ignored)
            for ranking_id, one, arm in zip(ranking_ids, prepared, arms, strict=True)
        ]

    def _arms_of(
        self, snapshots: ArmSnapshots, n_visits: int, visitors: Sequence[str | None] | None
    ) -> list[PolicySnapshot]:
        if visitors is None:
            if snapshots.has_one_arm:  # nearly always
                return [snapshots.policy] * n_visits
            visitors = [None] * n_visits
        elif isinstance(visitors, str) or len(visitors) != n_visits:
            found = visitors if isinstance(visitors, str) else len(visitors)
            raise InvalidInputError("visitors", f"must be {n_visits}, one for each user type", found)
        return snapshots.of_visits(visitors, self._random_bytes)

    def event(self, issued: IssuedRanking, feedback: Feedback) -> Event:
        """Return the event that feedback stands for.

        Raises
        ------
        UnknownNameError
            If a clicked item was not shown.
        InvalidInputError
            If the reward is not from 0 to 1 or given without a click, there are more clicks than the click
            model allows, or feedback without a click is not final.
        """
        reward = check_number("reward", feedback.reward, 0.0, 1.0)
        # Not the present click model: the clicks of a visit must not exceed the maximum of its period.
        is_single = self.validator.click_model_of(issued) == "single-look"
        clicked = feedback.clicked_items
        is_final = (is_single or not clicked) if feedback.final is None else feedback.final
        if not isinstance(is_final, bool):
            raise InvalidInputError("final", "must be true or false", is_final)
        if not clicked:
            if reward != 1.0:
                raise InvalidInputError("reward", "must be left out without a click", feedback.reward)
            if not is_final:
                raise InvalidInputError("final", "must be true without a click", feedback.final)
            return Event(issued.impression, NOT_CLICKED)
        if is_single and len(clicked) > 1:
            rule = "must be at most one item under click model single-look"
            raise InvalidInputError("clicked", rule, f"{len(clicked)} items")
        items = self.surface.items
        names = [items[item] for item in issued.impression.items]
        for item in clicked:
            if item not in names:
                raise UnknownNameError("clicked", item, names)
        positions = sorted({names.index(item) for item in clicked})
        units = round(reward * REWARD_UNITS)
        clicks = tuple([Click(position, units) for position in positions])
        return Event(issued.impression, Outcome(clicks, is_final, is_single=is_single and not is_final))

    def finish_feedback(
        self, event: Event, callback: Callable[[FeedbackResult], None], outcome: CommitOutcome
    ) -> None:
        """Call a callback with the feedback status, or with the error that rejected the feedback."""
        try:
            if outcome is COUNTED:
                self.feedback_tracker.add_feedback(event.impression.expires_at_ms, now=self._clock())
            result: FeedbackResult = feedback_status(outcome)
        except Exception as error:  # noqa: BLE001 - the caller waits for a result, whatever the error
            result = error
        callback(result)

    def has_expired(self, issued: IssuedRanking) -> bool:
        """Return whether a ranking's attribution window has closed."""
        return self._clock() * 1000 >= issued.impression.expires_at_ms

    def is_pruned(self, issued: IssuedRanking) -> bool:
        """Return whether a ranking is so old that its outcome may have been pruned."""
        return (self._clock() - self.surface.keep_seconds) * 1000 >= issued.impression.expires_at_ms

    def check_repeated(self, event: Event) -> None:
        """Accept late feedback only if it repeats what was counted in time.

        Raises
        ------
        ExpiredRankingError
            If it does not.
        """
        impression, outcome = event
        stored = self.store.outcome(self.surface_id, impression.key)
        if stored is None or outcome is None or not stored.covers(outcome):
            seconds = self._clock() - impression.expires_at_ms / 1000
            raise ExpiredRankingError(f"the ranking's attribution window closed {seconds:.0f} seconds ago")

    # State

    @property
    def surface(self) -> Surface:
        """Current definition."""
        return self._current.surface

    @property
    def compilations(self) -> Compilations:
        """Tracks the compilation of code for surfaces."""
        return self._compilations

    @property
    def user_type_numbers(self) -> Mapping[str, int]:
        """Numbers of the user types that `rank` accepts; a new one is accepted after the next refresh."""
        return self._snapshots.policy.user_type_numbers

    @property
    def revision(self) -> int:
        """Version of the definition."""
        return self._current.revision

    @property
    def version(self) -> int:
        """Version of the counts in this process."""
        return self._replica.version

    @property
    def is_deleted(self) -> bool:
        """Whether the surface was deleted."""
        return self._is_deleted

    @property
    def has_other_writers(self) -> bool:
        """Whether another process has written counts since this one loaded the surface."""
        return self.version > self._own_version

    @property
    def rounds(self) -> int:
        """Number of counted rankings."""
        return self._replica.rounds

    @property
    def staleness_seconds(self) -> float:
        """Age of the counts behind rankings; 0 if they are the latest in this process."""
        is_latest = self._snapshots.policy.version == self.version
        return 0.0 if is_latest else time.monotonic() - self._refreshed_at

    def ranks_fast(self, *, is_restricted: bool) -> bool:
        """Return whether rankings take microseconds, so that an event loop may make them.

        Parameters
        ----------
        is_restricted
            Whether the rankings have candidates, excluded or pinned items.
        """
        surface = self.surface
        is_large = len(surface.active_numbers) * surface.n_positions > _MAX_FAST_SIZE
        # Without a refresh period each ranking adds up the latest counts first.
        if surface.refresh_seconds == 0 or is_large:
            return False
        return not is_restricted or self.restricts_fast

    @property
    def restricts_fast(self) -> bool:
        """Whether a ranking of candidates neither compiles nor solves anything."""
        is_compiled = _restricted_kinds(self._snapshots.running) <= self._restricted
        surface = self._snapshots.policy.surface
        return is_compiled and surface.treatment == "personalized" and not surface.guarantees

    def policy_snapshot(self) -> PolicySnapshot:
        """Return the snapshot that the rankings of the surface's policy are computed from."""
        return self._latest_snapshots().policy

    def _latest_snapshots(self) -> ArmSnapshots:
        if self.surface.refresh_seconds == 0 and self._is_stale():
            self.refresh()
        return self._snapshots

    def counts(self) -> SurfaceCounts:
        """Return the latest counts in this process, of all items and all arms."""
        surface_counts = self._replica.surface_counts(*self._current)
        return surface_counts._replace(before_guarantees=self._counts_before_guarantees(surface_counts))

    def _counts_before_guarantees(self, latest: SurfaceCounts) -> Counts | None:
        """Return the counts when the guarantees took effect, as far as they are stored; None if none."""
        surface, since = latest.surface, latest.surface.guarantees_since_version
        if not surface.guarantees or since == 0:
            return None
        key = (since, len(surface.items), len(surface.user_types))
        if self._before_guarantees is None or self._before_guarantees[0] != key:
            earliest = CountsReplica.earliest_counts(self.store, self.surface_id, surface, since=since)
            self._before_guarantees = key, latest.counts if earliest is None else earliest
        return self._before_guarantees[1]

    def experiment_results(self) -> ExperimentResults:
        """Return the results of the surface's experiment by the latest counts in this process.

        Raises
        ------
        NoExperimentError
            If the surface has no experiment.
        """
        return experiment_results(*self._current, self._replica)

    # Updates

    def refresh(self) -> None:
        """Rank by the latest counts from now on."""
        with self._refresh_lock:
            if self._is_stale():
                self._snapshots = self._new_snapshot()
            self._refreshed_at = time.monotonic()
        if self._is_stale():  # `apply` may have compared a change with the snapshot before this one
            self._mark_due()

    def apply(self, change: Change) -> None:
        """Apply a change that this process committed."""
        self._own_version += 1
        version = self._replica.version
        if self._replica.apply(change):
            self._replica.catch_up()
        # Otherwise a refresh is due already: waking the sync loop with every commit would slow requests down.
        was_current = self._snapshots.policy.version >= version
        if was_current or self._replica.is_snapshot_due:
            self._mark_due()

    def _observe(self, change: Change) -> None:
        self.observer.on_change(change)

    def catch_up(self, version: int) -> None:
        """Apply changes that other processes committed, up to a version at least."""
        self._replica.reach(version)
        self._mark_due()

    def compile(self, surface: Surface) -> None:
        """Compile the policies of another definition if they are of other kinds; rankings continue meanwhile.

        Raises
        ------
        BanditRankError
            If the definition cannot be ranked.
        """
        is_other_kind = _policy_kind(surface) != _policy_kind(self.surface)
        if is_other_kind or surface.experiment != self.surface.experiment:
            with self._compilations.track(surface.name):
                ArmSnapshots.check_rankable(surface)

    def redefine(self, record: SurfaceRecord) -> None:
        """Switch to a newer definition; rankings follow with the next `refresh`."""
        with self._refresh_lock:
            if record.revision > self.revision:
                before, after = self.surface, _Definition.of(record)
                self._current = after  # first: feedback of a validated revision is read by it
                self.validator.add(record.revision, after.surface)
                if after.surface.attribution_seconds != before.attribution_seconds:
                    self.feedback_tracker = self.feedback_tracker.with_window(
                        after.surface.attribution_seconds
                    )
                self.observer.on_definition(before, after.surface)
        self._mark_due()

    def delete(self) -> None:
        """Reject rankings: the surface was deleted."""
        self._is_deleted = True

    def refuse(self, rule: str) -> None:
        """Reject rankings, which would break a rule."""
        self._refusal = rule

    def _is_stale(self) -> bool:
        latest = self._snapshots.policy
        return latest.version != self.version or latest.revision != self.revision

    def _new_snapshot(self) -> ArmSnapshots:
        surface, revision = self._current
        with self._compilations.track(surface.name):
            return ArmSnapshots.of_replica(surface, revision, self._replica)

    # Background tasks

    def due_in(self) -> float:
        """Return the number of seconds until a task is due; infinity if none is before an event."""
        return min(task.due_in() for task in self._tasks)

    def run_due_tasks(self) -> None:
        """Run the tasks that are due."""
        for task in self._tasks:
            task.run_if_due()

    def _make_tasks(self) -> tuple[PeriodicTask, ...]:
        name, expirer = self.surface.name, self._expirer
        return (
            PeriodicTask("refresh failed", self._refresh_in, self.refresh, surface=name),
            PeriodicTask("expiry failed", expirer.due_in, lambda: expirer.run(self.surface), surface=name),
            PeriodicTask(
                "snapshot failed",
                lambda: 0.0 if self._replica.is_snapshot_due else inf,
                self._save_snapshot_unless_newer,
                surface=name,
            ),
        )

    def save_snapshot(self) -> None:
        """Save a snapshot of the counts, and what the observer has to save."""
        self.observer.on_snapshot()
        self._replica.save_snapshot(int(self._clock() * 1000))

    def _save_snapshot_unless_newer(self) -> None:
        if self._replica.has_newer_snapshot():
            self.observer.on_snapshot()  # the other process may have no observer of this kind
        else:
            self.save_snapshot()

    def _refresh_in(self) -> float:
        if self._snapshots.policy.revision != self.revision:
            return 0.0  # retired items must not be shown any longer
        if not self._is_stale():
            return inf
        return max(0.0, self._refreshed_at + self.surface.refresh_seconds - time.monotonic())


def _restricted_kinds(snapshots: Iterable[PolicySnapshot]) -> frozenset[tuple[str, str]]:
    """Return the policies and treatments of snapshots whose code for candidates is compiled."""
    return frozenset((one.policy_name, one.surface.treatment) for one in snapshots)


def _by_arm(
    arms: Sequence[PolicySnapshot],
    user_types: Sequence[int],
    rank: Callable[[PolicySnapshot, Sequence[int]], list[PreparedRanking]],
) -> list[PreparedRanking]:
    """Return a ranking of each visit, which the snapshot of its arm ranks."""
    if all(arm is arms[0] for arm in arms):
        return rank(arms[0], user_types) if arms else []
    visits: dict[PolicySnapshot, list[int]] = {}
    for index, arm in enumerate(arms):
        visits.setdefault(arm, []).append(index)
    rankings = {
        index: ranking
        for arm, indices in visits.items()
        for index, ranking in zip(indices, rank(arm, [user_types[one] for one in indices]), strict=True)
    }
    return [rankings[index] for index in range(len(arms))]


class _Definition(NamedTuple):
    """A surface and its revision."""

    surface: Surface
    revision: int

    @classmethod
    def of(cls, record: SurfaceRecord) -> "_Definition":
        return cls(Surface.from_definition(record.definition), record.revision)


def _policy_kind(surface: Surface) -> tuple[str, str, str, bool]:
    """Return the settings that determine the compiled code."""
    return surface.policy, surface.treatment, surface.utility, bool(surface.guarantees)
