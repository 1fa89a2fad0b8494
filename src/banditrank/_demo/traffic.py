"""Simulated traffic of one surface through the service's API."""

import asyncio
import heapq
from collections.abc import Iterator
from itertools import count

from banditrank._demo.regret_tracker import UNKNOWN_ITEM, RegretTracker
from banditrank._demo.visits import Visit
from banditrank._shown_ranking import ShownRanking
from banditrank.client._asynchronous import AsyncClient
from banditrank.errors import ExpiredRankingError, ServiceError, UnknownRankingError

_MAX_CONCURRENT_VISITS = 8
_MAX_LAG_SECONDS = 1.0  # after a longer delay, such as compilation, missed visits do not arrive all at once


class Traffic:
    """Visits to a surface.

    Parameters
    ----------
    client
        Client of the service.
    visits
        Visits to make.
    tracker
        Tracker that records them.
    speed
        Visits per second, at random times; 0 for as fast as the service responds.
    rounds
        Number of visits; None for no end.

    Attributes
    ----------
    started
        Set after the first visit, or when there will be none.
    """

    def __init__(
        self,
        client: AsyncClient,
        visits: Iterator[Visit],
        tracker: RegretTracker,
        *,
        speed: float,
        rounds: int | None = None,
    ) -> None:
        self._client = client
        self._tracker = tracker
        self._speed = speed
        indices = count() if rounds is None else range(rounds)
        self._visits = zip(indices, visits, strict=False)
        self._clock = asyncio.get_running_loop().time
        self._next_at = self._clock()
        self.started = asyncio.Event()
        self._late: list[tuple[int, str, str | None]] = []  # heap of feedback, by the visit it follows
        surface = tracker.surface
        self._name = surface.name
        self._user_types = surface.problem.user_types
        self._item_indices = {item: index for index, item in enumerate(surface.problem.items)}

    async def run(self) -> None:
        """Make all visits and send their late feedback.

        Returns early if the surface is deleted.
        """
        workers = [asyncio.create_task(self._work()) for _ in range(_MAX_CONCURRENT_VISITS)]
        try:
            await asyncio.gather(*workers)
            await self._send_late(until=None)
        except UnknownRankingError:
            self._tracker.is_deleted = True
        except ServiceError as error:
            if error.error_type != "unknown-surface":
                raise
            self._tracker.is_deleted = True
        finally:
            self.started.set()
            for worker in workers:
                worker.cancel()

    async def _work(self) -> None:
        for index, visit in self._visits:
            if self._speed:
                now = self._clock()
                self._next_at += visit.relative_interval / self._speed
                self._next_at = max(self._next_at, now - _MAX_LAG_SECONDS)
                await asyncio.sleep(self._next_at - now)
            await self._visit(index, visit)
            self.started.set()
            await self._send_late(until=index)

    async def _visit(self, index: int, visit: Visit) -> None:
        shown = await self._client.rank(self._name, self._user_types[visit.user_type])
        ranking = [self._item_indices.get(item, UNKNOWN_ITEM) for item in shown.items]
        examined = ranking[visit.examined_position]
        clicked = visit.clicks(self._tracker.item_means[visit.user_type][examined])
        self._tracker.record(visit.user_type, ranking, clicked=clicked)
        await self._report(index, visit, shown, shown.items[visit.examined_position] if clicked else None)

    async def _report(self, index: int, visit: Visit, shown: ShownRanking, clicked: str | None) -> None:
        if visit.report_delay is None:
            self._tracker.lost_reports += 1
        elif visit.report_delay:
            heapq.heappush(self._late, (index + visit.report_delay, shown.id, clicked))
        else:
            await self._client.feedback(shown.id, clicked=clicked)

    async def _send_late(self, *, until: int | None) -> None:
        while self._late and (until is None or self._late[0][0] <= until):
            _, ranking_id, clicked = heapq.heappop(self._late)
            try:
                await self._client.feedback(ranking_id, clicked=clicked)
            except ExpiredRankingError:  # expired, when visits are rare
                self._tracker.lost_reports += 1
            else:
                self._tracker.late_reports += 1
