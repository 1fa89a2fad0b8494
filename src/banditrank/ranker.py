"""The engine for one surface, in process: no server."""

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from banditrank.dashboard.explain import explain
from banditrank.engine.engine import Engine
from banditrank.dashboard.estimates_report import EstimatesReport, report_estimates
from banditrank.dashboard.explanation import Explanation
from banditrank.engine.surface_runtime import SurfaceRuntime, ShownRanking
from banditrank.engine.surface import Surface
from banditrank.engine.ranking_ids import RandomBytes
from banditrank.dashboard.treatment_report import TreatmentReport, report_treatments
from banditrank.errors import InvalidInputError, AlreadyExistsError
from banditrank.counts.counts import Counts
from banditrank.storage.base import Store
from banditrank.storage.memory import MemoryStore


class Ranker:
    """Ask what to show, tell what was clicked. Threads may share one.

    Parameters
    ----------
    surface
        What to rank. If the store has a surface of this name already, it must be the same, but for items
        added or retired since; what was learned is gone on with.
    store
        Where to keep what is learned: what `open_store` returns. Memory, if left out.
    sync_seconds
        How often to look for what other processes wrote to the store.
    clock
        Gives the time in seconds since 1970.
    random_bytes
        Where the randomness of rankings comes from: of their ids, and of policies that explore. A seeded
        source makes runs repeatable.

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
        sync_seconds: float = 0.25,
        clock: Callable[[], float] = time.time,
        random_bytes: RandomBytes | None = None,
    ) -> None:
        self._engine = Engine(
            MemoryStore() if store is None else store,
            sync_seconds=sync_seconds,
            clock=clock,
            random_bytes=random_bytes,
        )
        try:
            self._live = self._found_or_made(surface)
        except BaseException:
            self._engine.close()
            raise

    def _found_or_made(self, surface: Surface) -> SurfaceRuntime:
        record = self._engine.store.find_surface(surface.name)
        if record is None:
            try:
                return self._engine.create(surface)
            except AlreadyExistsError:  # by a process that started at the same time
                return self._found_or_made(surface)
        kept = Surface.from_definition(record.definition).to_dict()
        for setting, value in surface.to_dict().items():
            if setting not in ("items", "retired") and kept[setting] != value:
                rule = f"must be {kept[setting]!r} as in the store"
                raise InvalidInputError(f"{surface.name}'s {setting}", rule, value)
        known = set(kept["items"])
        for item in surface.items:
            if item not in known:
                rule = "must be in the store already: add_items adds one"
                raise InvalidInputError(f"{surface.name}'s items", rule, item)
        return self._engine.surface(surface.name)

    @property
    def surface(self) -> Surface:
        """What is ranked now."""
        return self._live.surface

    def rank(self, user_type: str) -> ShownRanking:
        """Return what to show to a user of a type."""
        return self._live.rank(user_type)

    def feedback(self, ranking_id: str, *, clicked: str | None = None, reward: float = 1.0) -> str:
        """Count what became of a ranking, and wait until that is durable.

        Parameters
        ----------
        ranking_id
            The ranking's.
        clicked
            The item, None for none.
        reward
            What the click is worth, from 0 to 1; left out without one.

        Returns
        -------
        str
            ``counted``, or ``repeated`` if the same feedback was counted before.
        """
        return self._engine.feedback(ranking_id, clicked=clicked, reward=reward)

    def add_items(self, names: Iterable[str]) -> None:
        """Let items be shown that are new, or were retired."""
        added = list(names)
        self._engine.change(self.surface.name, lambda surface: surface.with_items(added))

    def retire_items(self, names: Iterable[str]) -> None:
        """Show items no more. What was learned of them stays."""
        gone = list(names)
        self._engine.change(self.surface.name, lambda surface: surface.with_retired(gone))

    def counts(self) -> Counts:
        """Return the counts that rankings are made from, of the items that can be shown."""
        self._live.refresh()
        return self._live.view().counts.copy()

    def estimates(self, *, level: float = 0.95) -> EstimatesReport:
        """Return what was learned of positions and items, with intervals that hold the truth so probably."""
        return report_estimates(self._live, level=level)

    def equality(self) -> TreatmentReport:
        """Return what personalized and equal treatment give each user type and item."""
        return report_treatments(self._live)

    def explain(self, ranking_id: str) -> Explanation:
        """Return what a ranking was made of, why it came out as it did, and what became of it."""
        return explain(self._engine, ranking_id)

    def close(self) -> None:
        """Write what is waiting, and stop. The store stays open."""
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
