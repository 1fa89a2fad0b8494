"""Everything at once: the service, its surfaces, users who click, and what was learned from them."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from banditrank import __version__
from banditrank.checks import check_integer, check_number
from banditrank.client.asynchronous import AsyncClient
from banditrank.client.attempts import ServiceError
from banditrank.demo.account import Account
from banditrank.demo.connections import KeptConnections
from banditrank.demo.service import running_service
from banditrank.demo.summary import SurfaceSummary, summarise
from banditrank.demo.surfaces import KnownSurface, home_carousel, search_ads
from banditrank.demo.traffic import Traffic
from banditrank.demo.users import users_of
from banditrank.errors import InvalidInputError
from banditrank.storage.addresses import redacted

MOST_ROUNDS = 1_000_000_000
FASTEST = 10_000.0
_PATIENCE = 300.0  # seconds for an answer: the first ones wait for what is compiled
_PAUSE = 0.5  # seconds between two looks at how far it has come
_MADE = (search_ads, home_carousel)

Ready = Callable[[str], None]
Watch = Callable[[Sequence[Account]], None]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What was learned on all surfaces.

    Attributes
    ----------
    seed, rounds, speed
        As asked for.
    version
        Of banditrank.
    interrupted
        Whether somebody ended it.
    surfaces
        What was learned on those that had visits.
    """

    seed: int
    rounds: int | None
    speed: float
    version: str
    interrupted: bool
    surfaces: tuple[SurfaceSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "seed": self.seed,
            "rounds": self.rounds,
            "speed": self.speed,
            "version": self.version,
            "interrupted": self.interrupted,
            "surfaces": [surface.to_dict() for surface in self.surfaces],
        }


def run_demo(
    *,
    port: int | None = None,
    store: str | None = None,
    rounds: int | None = None,
    seed: int = 0,
    speed: float = 50.0,
    stay: bool = False,
    ready: Ready = lambda _: None,
    came: Callable[[], None] = lambda: None,
    watch: Watch = lambda _: None,
) -> DemoResult:
    """Run the demo until all users came, or until SIGINT or SIGTERM.

    Parameters
    ----------
    port
        Where the service listens; None for the usual port, or the next that is free.
    store
        Address of the store; None for one that is removed in the end.
    rounds
        Users of each surface; None for no end.
    seed
        The same seed gives the same users.
    speed
        Users of each surface a second; 0 for as fast as they are answered.
    stay
        Whether the service stays when all users came, until a signal.
    ready
        Called with the service's address as soon as there is a surface to see.
    came
        Called when all users came.
    watch
        Called now and then with what became of the users so far.
    """
    check_integer("seed", seed, 0)
    check_number("speed", speed, 0.0, FASTEST)
    if rounds is not None:
        check_integer("rounds", rounds, 1, MOST_ROUNDS)

    async def play(address: str) -> DemoResult:
        async with AsyncClient(address, timeout=_PATIENCE, transport=KeptConnections()) as client:
            accounts: list[Account] = []
            users = _let_users_come(
                client, accounts, store, lambda: ready(address), rounds=rounds, seed=seed, speed=speed
            )
            finished = await _until_stopped(users, lambda: watch(accounts))
            if finished:
                came()
                if stay:
                    await _until_stopped(asyncio.Event().wait(), lambda: None)
            learned = [
                await summarise(client, account)
                for account in accounts
                if account.visits and not account.deleted
            ]
        return DemoResult(seed, rounds, speed, __version__, not finished, tuple(learned))

    truths = {known.name: known.world for known in (make() for make in _MADE)}
    with (
        _told_to_stop_as_by_a_key(),
        _store_or_temporary(store) as place,
        running_service(port=port, store=place, truths=truths) as address,
    ):
        return asyncio.run(play(address))


async def _let_users_come(
    client: AsyncClient,
    accounts: list[Account],
    store: str | None,
    ready: Callable[[], None],
    *,
    rounds: int | None,
    seed: int,
    speed: float,
) -> None:
    """Open one surface after the other.

    On a machine where nothing is compiled yet, what the first one's rankings and page need is compiled before
    the second is, and can be seen meanwhile.
    """
    flows = []
    try:
        for stream, make in enumerate(_MADE):
            known = make()
            await _open(client, known, store)
            if not accounts:
                ready()
            account = await asyncio.to_thread(Account, known)
            accounts.append(account)
            users = users_of(known.world, seed=seed, stream=stream)
            traffic = Traffic(client, users, account, speed=speed, rounds=rounds)
            flows.append(asyncio.create_task(traffic.flow()))
            await traffic.begun.wait()
            with suppress(ServiceError):  # if there is anything wrong, users are told so, too
                await client.dashboard(known.name)
        await asyncio.gather(*flows)
    finally:
        for flow in flows:
            flow.cancel()


async def _open(client: AsyncClient, known: KnownSurface, store: str | None) -> None:
    """Create a surface, or go on with that of an earlier demo."""
    definition = known.definition
    try:
        await client.create_surface(**definition)
    except ServiceError as error:
        if error.kind != "name-taken":
            raise
        there = await client.surface(known.name)
        names = [item["name"] for item in there["items"]]
        there["items"] = names[: known.world.n_items]  # some may have been added
        for setting in ("items", "n_positions", "user_types", "treatment", "utility"):
            if there[setting] != definition[setting]:
                rule = f"must not hold another surface {known.name}: its {setting} differ"
                raise InvalidInputError("store", rule, None if store is None else redacted(store)) from None


async def _until_stopped(work: Coroutine[Any, Any, Any], watch: Callable[[], None]) -> bool:
    """Do some work; return whether it was finished, and not ended by a signal."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, task.cancel)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_PAUSE)
            watch()
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
        task.cancel()
    if task.cancelled():
        return False
    task.result()
    return True


@contextmanager
def _told_to_stop_as_by_a_key() -> Iterator[None]:
    """Take SIGTERM for Ctrl-C, so that nothing is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _store_or_temporary(store: str | None) -> Iterator[str]:
    if store is not None:
        yield store
        return
    with TemporaryDirectory(prefix="banditrank-demo-", ignore_cleanup_errors=True) as directory:
        yield f"sqlite:{Path(directory) / 'demo.db'}"
