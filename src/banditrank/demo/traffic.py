"""Users of one surface, who come through the service's API."""

import asyncio
import heapq
from collections.abc import Iterator
from itertools import count

from banditrank.client.asynchronous import AsyncClient
from banditrank.client.retries import ServiceError
from banditrank.demo.account import UNKNOWN_ITEM, Account
from banditrank.demo.users import Visit
from banditrank.errors import ExpiredRankingError, UnknownRankingError
from banditrank.shown_ranking import ShownRanking

_AT_ONCE = 8  # users of a surface who are there at the same time, at most
_MOST_BEHIND = (
    1.0  # seconds: who could not come for longer, as the service compiled, does not come all at once
)


class Traffic:
    """Lets users come, one after another.

    Parameters
    ----------
    client
        Of the service.
    users
        Who they are.
    account
        Where it is noted what became of them.
    speed
        Users a second, at random times; 0 for as fast as they are answered.
    rounds
        How many; None for no end.

    Attributes
    ----------
    begun
        Set when the first user was served, or none will be.
    """

    def __init__(
        self,
        client: AsyncClient,
        users: Iterator[Visit],
        account: Account,
        *,
        speed: float,
        rounds: int | None = None,
    ) -> None:
        self._client = client
        self._account = account
        self._speed = speed
        numbers = count() if rounds is None else range(rounds)
        self._coming = zip(numbers, users, strict=False)
        self._clock = asyncio.get_running_loop().time
        self._next = self._clock()
        self.begun = asyncio.Event()
        self._late: list[tuple[int, str, str | None]] = []  # reports, by the visit after which they come
        known = account.known
        self._name = known.name
        self._user_types = known.world.user_types
        self._items = {item: number for number, item in enumerate(known.world.items)}

    async def flow(self) -> None:
        """Let all come, and all late reports with them; return after the last.

        Or when somebody deletes the surface.
        """
        workers = [asyncio.create_task(self._serve()) for _ in range(_AT_ONCE)]
        try:
            await asyncio.gather(*workers)
            await self._send_late(until=None)
        except UnknownRankingError:
            self._account.deleted = True
        except ServiceError as error:
            if error.error_type != "unknown-surface":
                raise
            self._account.deleted = True
        finally:
            self.begun.set()
            for worker in workers:
                worker.cancel()

    async def _serve(self) -> None:
        for number, visit in self._coming:
            if self._speed:
                now = self._clock()
                self._next = max(self._next + visit.pause / self._speed, now - _MOST_BEHIND)
                await asyncio.sleep(self._next - now)
            await self._visit(number, visit)
            self.begun.set()
            await self._send_late(until=number)

    async def _visit(self, number: int, visit: Visit) -> None:
        shown = await self._client.rank(self._name, self._user_types[visit.user_type])
        ranking = [self._items.get(item, UNKNOWN_ITEM) for item in shown.items]
        clicked = visit.clicks(self._account.means[visit.user_type][ranking[visit.look]])
        self._account.note(visit.user_type, ranking, clicked=clicked)
        await self._report(number, visit, shown, shown.items[visit.look] if clicked else None)

    async def _report(self, number: int, visit: Visit, shown: ShownRanking, clicked: str | None) -> None:
        if visit.report_after is None:
            self._account.lost += 1
        elif visit.report_after:
            heapq.heappush(self._late, (number + visit.report_after, shown.id, clicked))
        else:
            await self._client.feedback(shown.id, clicked=clicked)

    async def _send_late(self, *, until: int | None) -> None:
        while self._late and (until is None or self._late[0][0] <= until):
            _, ranking, clicked = heapq.heappop(self._late)
            try:
                await self._client.feedback(ranking, clicked=clicked)
            except ExpiredRankingError:  # later than the service waits: when users are few
                self._account.lost += 1
            else:
                self._account.late += 1
