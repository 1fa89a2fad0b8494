"""Rank and learn in process, without a server."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, get_args

from banditrank._feedback import Feedback
from banditrank._shown_ranking import ShownRanking
from banditrank.counts._counts import Counts
from banditrank.dashboard._estimates_report import EstimatesReport, report_estimates
from banditrank.dashboard._explain import Explanation, explain
from banditrank.dashboard._treatment_report import TreatmentReport, report_treatments
from banditrank.engine._engine import Engine
from banditrank.engine._experiment import SurfaceExperiment
from banditrank.engine._experiment_results import ExperimentResults
from banditrank.engine._ranking_ids import RandomBytes
from banditrank.engine._redeployment import SurfaceUpdate, differing_settings, redeploy
from banditrank.engine._surface import ItemChanges, Surface
from banditrank.engine._surface_runtime import SurfaceRuntime
from banditrank.errors import AlreadyExistsError, UnknownNameError
from banditrank.storage._base import Store
from banditrank.storage._memory import MemoryStore

logger = logging.getLogger(__name__)


class Ranker:
    """Ranks one surface and learns from its feedback, in process. Thread-safe.

    An unused ranker uses no processor time: it syncs with other processes only while it is used. The
    first ranking after a pause may therefore use the counts from before the pause.

    Parameters
    ----------
    surface
        The surface to rank. If the store has a surface of this name, learning resumes from the stored
        counts. Without an experiment here, that of the store continues.
    store
        Where counts are kept, from `open_store`; in memory by default.
    update
        What to do if the store has a surface of this name with another definition. ``items``: add the items
        that `surface` gained since it was deployed last, and retire those that it lost; other settings must
        be the same. ``all``: take the other settings as well, those that can change. ``never``: use the
        stored definition, and log how it differs.
    sync_seconds
        Period of the sync with other processes that use the store.
    clock
        Returns the time in seconds since 1970.
    random_bytes
        Source of the randomness of ranking ids and exploring policies. A seeded source makes runs
        repeatable.

    Raises
    ------
    InvalidInputError
        If the store has a surface of this name with settings that `update` does not take, or that cannot
        change, or if `update` is unknown.
    StoreError
        If the store cannot be read or written.

    Examples
    --------
    >>> surface = Surface("ads", items=["ad-1", "ad-2", "ad-3"], n_positions=2, user_types=["new", "old"])
    >>> with Ranker(surface) as ranker:
    ...     shown = ranker.rank("new")
    ...     ranker.feedback(shown.id, clicked=shown.items[0])
    ...     ranker.feedback(shown.id, clicked=shown.items[0])
    ...     ranker.counts().rounds
    'counted'
    'repeated'
    1
    """

    def __init__(
        self,
        surface: Surface,
        store: Store | None = None,
        *,
        update: SurfaceUpdate = "items",
        sync_seconds: float = 0.25,
        clock: Callable[[], float] = time.time,
        random_bytes: RandomBytes | None = None,
    ) -> None:
        if update not in get_args(SurfaceUpdate):
            raise UnknownNameError("update", update, get_args(SurfaceUpdate))
        self._engine = Engine(
            MemoryStore() if store is None else store,
            sync_seconds=sync_seconds,
            polls=clock is not time.time,  # a clock of the caller may be set at any time
            clock=clock,
            random_bytes=random_bytes,
        )
        try:
            self._runtime = self._open(surface, update)
        except BaseException:
            self._engine.close()
            raise

    def _open(self, surface: Surface, update: SurfaceUpdate = "items") -> SurfaceRuntime:
        if self._engine.store.find_surface(surface.name) is None:
            try:
                return self._engine.create_surface(replace(surface, deployed_items=surface.active_items))
            except AlreadyExistsError:  # another process created it at the same time
                return self._open(surface, update)
        runtime = self._engine.surface(surface.name)
        stored = runtime.surface
        if update == "never":
            if differing := differing_settings(stored, surface):
                fields = {"surface": surface.name, "settings": differing}
                logger.warning(
                    "surface differs from the stored one in %s", ", ".join(differing), extra=fields
                )
            return runtime
        runtime = self._engine.update_surface(surface.name, lambda stored: redeploy(stored, surface, update))
        if changed := differing_settings(stored, runtime.surface):
            fields = {"surface": surface.name, "settings": changed}
            logger.info("surface updated in %s", ", ".join(changed), extra=fields)
        return runtime

    @property
    def surface(self) -> Surface:
        """Current definition of the surface."""
        self._engine.touch()
        return self._runtime.surface

    def rank(
        self,
        user_type: str,
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        visitor: str | None = None,
    ) -> ShownRanking:
        """Return a ranking to show to a user: the policy's best of the candidates.

        Parameters
        ----------
        user_type
            User type of the user.
        candidates
            Items that may be shown; all active items by default. Retired and unknown ones are ignored, and
            named in the ranking.
        exclude
            Items that must not be shown; retired and unknown ones are ignored likewise.
        pinned
            Items that must be shown, by position: 1 is the first. They need not be candidates.
        visitor
            Id of the visitor, up to 200 characters, who stays in the same arm of an experiment; by default
            the arm is chosen by chance. It is not stored.

        Raises
        ------
        UnknownNameError
            If the surface has no such user type or pinned item.
        UnknownSurfaceError
            If the surface was deleted.
        InvalidInputError
            If there are too few candidates, a pin is not valid, a policy cannot restrict its rankings, the
            visitor id is not valid, or this is a forked process.
        StoreUnavailableError
            If the ranker is closed.
        """
        self._engine.check_open()
        self._engine.touch()
        return self._runtime.rank(
            user_type, candidates=candidates, exclude=exclude, pinned=pinned, visitor=visitor
        )

    def rank_batch(
        self,
        user_types: Sequence[str],
        *,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        pinned: Mapping[int, str] | None = None,
        visitors: Sequence[str | None] | None = None,
    ) -> list[ShownRanking]:
        """Return a ranking for a user of each type, all of them or none.

        Parameters
        ----------
        user_types
            User type of each user.
        candidates, exclude, pinned
            As for `rank`, for all users.
        visitors
            Id of each visitor, or None, as for `rank`.

        Raises
        ------
        UnknownNameError, UnknownSurfaceError, InvalidInputError, StoreUnavailableError
            As for `rank`.
        """
        self._engine.check_open()
        self._engine.touch()
        return self._runtime.rank_batch(
            user_types, candidates=candidates, exclude=exclude, pinned=pinned, visitors=visitors
        )

    def feedback(
        self,
        ranking_id: str,
        *,
        clicked: str | Sequence[str] | None = None,
        reward: float = 1.0,
        final: bool | None = None,
    ) -> str:
        """Count or record the feedback for a ranking, and wait until that is durable.

        Parameters
        ----------
        ranking_id, clicked, reward, final
            As for `Feedback`.

        Returns
        -------
        str
            ``counted``; ``recorded`` if the ranking is counted later; or ``repeated`` if the feedback adds
            nothing.

        Raises
        ------
        FeedbackError
            If the ranking is unknown, its window closed, or other feedback was reported for it.
        InvalidInputError
            If an item was not shown, the reward is not from 0 to 1, there are more clicks than the click
            model allows, or feedback without a click is not final.
        StoreUnavailableError
            If the store cannot be written to, and the same feedback may be sent again, or the ranker is
            closed.
        """
        self._engine.touch()
        return self._engine.feedback(ranking_id, clicked=clicked, reward=reward, final=final)

    def feedback_batch(self, feedback: Iterable[Feedback]) -> list[str | Exception]:
        """Count the feedback for several rankings, and wait until that is durable.

        Returns
        -------
        list of str or Exception
            ``counted``, ``recorded``, ``repeated`` or the error that rejected it, for each feedback in order.

        Raises
        ------
        InvalidInputError
            If an element is not a `Feedback`; nothing is counted then.
        """
        self._engine.touch()
        return self._engine.feedback_batch(feedback)

    def submit_feedback(
        self, feedback: Feedback, *, callback: Callable[[str | Exception], None], may_read_store: bool = True
    ) -> bool:
        """Submit feedback without waiting for its commit, as `Engine.submit_feedback`.

        Parameters
        ----------
        feedback
            The feedback.
        callback
            Called once in another thread, with the status as for `feedback` once that is durable, or with the
            error that rejected the feedback.
        may_read_store
            Whether to read the store if that is necessary, which blocks.

        Returns
        -------
        bool
            False if the store must be read first: nothing was submitted, and `callback` is not called.

        Raises
        ------
        BanditRankError
            If the feedback is invalid, or cannot be queued; `callback` is not called.
        """
        self._engine.touch()
        return self._engine.submit_feedback(feedback, callback=callback, may_read_store=may_read_store)

    def ranks_fast(self, *, is_restricted: bool = False) -> bool:
        """Return whether rankings take microseconds, so that an event loop may make them.

        Parameters
        ----------
        is_restricted
            Whether the rankings have candidates, excluded or pinned items.
        """
        return self._runtime.ranks_fast(is_restricted=is_restricted)

    def add_items(self, items: Iterable[str]) -> ItemChanges:
        """Add items, or bring retired ones back; active ones stay.

        Returns
        -------
        ItemChanges
            The items that were added or revived.

        Raises
        ------
        InvalidInputError
            If a name is invalid, or there would be too many items.
        """
        return self._update_items(Surface.with_items, items)

    def retire_items(self, items: Iterable[str]) -> ItemChanges:
        """Stop showing items; their counts are kept.

        Returns
        -------
        ItemChanges
            The items that were retired.

        Raises
        ------
        InvalidInputError
            If an item is unknown, or too few would be left.
        """
        return self._update_items(Surface.with_retired, items)

    def sync_items(self, items: Iterable[str]) -> ItemChanges:
        """Make these items, and no others, the active ones: add, revive and retire items in one step.

        The same items again change nothing.

        Returns
        -------
        ItemChanges
            The items that were added, revived or retired.

        Raises
        ------
        InvalidInputError
            If a name is invalid, there are fewer items than positions, or there would be too many items.

        Examples
        --------
        >>> with Ranker(Surface("home", items=["a", "b", "c"], n_positions=2)) as ranker:
        ...     ranker.sync_items(["b", "c", "d"])
        ...     ranker.surface.active_items
        ItemChanges(added=('d',), revived=(), retired=('a',), unchanged=2)
        ('b', 'c', 'd')
        """
        return self._update_items(Surface.with_catalogue, items)

    def _update_items(
        self, update: Callable[[Surface, Iterable[str]], Surface], items: Iterable[str]
    ) -> ItemChanges:
        names = items if isinstance(items, str) else list(items)  # an iterator, for several attempts
        _, changes = self._engine.update_items(self.surface.name, lambda surface: update(surface, names))
        return changes

    def counts(self) -> Counts:
        """Return the counts of the active items that rankings are computed from."""
        self._engine.touch()
        self._runtime.refresh()
        return self._runtime.policy_snapshot().counts.copy()

    def estimates(self, *, level: float = 0.95) -> EstimatesReport:
        """Return estimates of positions and items with intervals of a confidence level.

        Raises
        ------
        InvalidInputError
            If the level is out of range.
        """
        self._engine.touch()
        return report_estimates(self._runtime.counts(), level=level)

    def equality(self) -> TreatmentReport:
        """Return the value of personalized and equal treatment for each user type and item."""
        self._engine.touch()
        return report_treatments(self._runtime.counts())

    def set_experiment(self, experiment: SurfaceExperiment | None) -> None:
        """Start an experiment, change the present one, or stop it with None.

        Arms can be appended, and shares be changed. An experiment under a new name is another one.

        Raises
        ------
        InvalidInputError
            If an arm does not fit the surface, was removed, or has another policy than before.
        """
        self._engine.update_surface(
            self.surface.name, lambda surface: replace(surface, experiment=experiment)
        )

    def experiment(self) -> ExperimentResults:
        """Return the results of the surface's experiment.

        Raises
        ------
        NoExperimentError
            If the surface has no experiment.
        """
        self._engine.touch()
        return self._runtime.experiment_results()

    def explain(self, ranking_id: str) -> Explanation:
        """Return the counts and beliefs behind a ranking, and its outcome.

        Raises
        ------
        UnknownRankingError
            If the ranking was not issued from this store.
        PrunedError
            If the ranking's counts were pruned; see `Surface.keep_seconds`.
        """
        self._engine.touch()
        return explain(self._engine, ranking_id)

    def close(self) -> None:
        """Commit what is queued, and stop. Reports are still available, and the store stays open."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()
