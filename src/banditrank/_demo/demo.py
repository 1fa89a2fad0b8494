"""The demo: a service, its surfaces, simulated traffic, and a summary of what was learned."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from banditrank import __version__
from banditrank._checks import check_integer, check_number
from banditrank._demo.regret_tracker import RegretTracker
from banditrank._demo.service import running_service
from banditrank._demo.summary import SurfaceSummary, summarise
from banditrank._demo.surfaces import DemoSurface, home_carousel, search_ads
from banditrank._demo.traffic import Traffic
from banditrank._demo.transport import KeepAliveTransport
from banditrank._demo.visits import generate_visits
from banditrank.client._asynchronous import AsyncClient
from banditrank.errors import InvalidInputError, ServiceError
from banditrank.storage._addresses import redacted

MAX_ROUNDS = 1_000_000_000
MAX_SPEED = 10_000.0
_TIMEOUT_SECONDS = 300.0  # the first responses wait for compilation
_PROGRESS_SECONDS = 0.5  # between two calls of on_progress
_SURFACES = (search_ads, home_carousel)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Result of a demo.

    Attributes
    ----------
    seed, rounds, speed
        Settings of the demo.
    version
        Version of banditrank.
    is_interrupted
        Whether a signal ended the demo.
    surfaces
        Summaries of the surfaces that had visits.
    """

    seed: int
    rounds: int | None
    speed: float
    version: str
    is_interrupted: bool
    surfaces: tuple[SurfaceSummary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as in the output of ``banditrank demo --json``."""
        return {
            "seed": self.seed,
            "rounds": self.rounds,
            "speed": self.speed,
            "version": self.version,
            "is_interrupted": self.is_interrupted,
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
    on_open: Callable[[str], None] = lambda _: None,
    on_ready: Callable[[str], None] = lambda _: None,
    on_finished: Callable[[], None] = lambda: None,
    on_progress: Callable[[Sequence[RegretTracker]], None] = lambda _: None,
) -> DemoResult:
    """Run the demo until all visits are made, or until SIGINT or SIGTERM.

    Parameters
    ----------
    port
        Port of the service; None for the default one, or the next that is free.
    store
        Address of the store; None for a temporary one.
    rounds
        Number of visits to each surface; None for no end.
    seed
        The same seed gives the same visits.
    speed
        Visits per second to each surface; 0 for as fast as the service responds.
    stay
        Whether the service keeps running after all visits, until a signal.
    on_open
        Called with the name of each surface before it is opened, which may compile code.
    on_ready
        Called with the service's URL when the first surface exists.
    on_finished
        Called after all visits.
    on_progress
        Called about twice per second with the trackers of all surfaces.

    Raises
    ------
    InvalidInputError
        If a setting is invalid, the port is taken, or the store cannot be used.
    BanditRankError
        If the service does not start.
    ServiceError
        If a request fails.
    """
    check_integer("seed", seed, 0)
    check_number("speed", speed, 0.0, MAX_SPEED)
    if rounds is not None:
        check_integer("rounds", rounds, 1, MAX_ROUNDS)

    async def run(address: str) -> DemoResult:
        async with AsyncClient(
            address, timeout_seconds=_TIMEOUT_SECONDS, transport=KeepAliveTransport()
        ) as client:
            trackers: list[RegretTracker] = []
            traffic = _run_traffic(
                client,
                trackers,
                store,
                on_open,
                lambda: on_ready(address),
                rounds=rounds,
                seed=seed,
                speed=speed,
            )
            finished = await _until_stopped(traffic, lambda: on_progress(trackers))
            if finished:
                on_finished()
                if stay:
                    await _until_stopped(asyncio.Event().wait(), lambda: None)
            summaries = [
                await summarise(client, tracker)
                for tracker in trackers
                if tracker.visits and not tracker.is_deleted
            ]
        return DemoResult(seed, rounds, speed, __version__, not finished, tuple(summaries))

    surfaces = [make() for make in _SURFACES]
    true_problems = {surface.name: surface.problem for surface in surfaces}
    with (
        _sigterm_as_interrupt(),
        _store_or_temporary(store) as store_address,
        running_service(port=port, store=store_address, true_problems=true_problems) as address,
    ):
        return asyncio.run(run(address))


async def _run_traffic(
    client: AsyncClient,
    trackers: list[RegretTracker],
    store: str | None,
    on_open: Callable[[str], None],
    on_ready: Callable[[], None],
    *,
    rounds: int | None,
    seed: int,
    speed: float,
) -> None:
    """Open one surface after the other and run their traffic.

    On a machine without compiled code, the code for the first surface compiles before that for the second, so
    that its page can be opened meanwhile.
    """
    tasks = []
    try:
        for stream, make in enumerate(_SURFACES):
            surface = make()
            on_open(surface.name)
            await _open_surface(client, surface, store)
            if not trackers:
                on_ready()
            tracker = await asyncio.to_thread(RegretTracker, surface)
            trackers.append(tracker)
            visits = generate_visits(surface.problem, seed=seed, stream=stream)
            traffic = Traffic(client, visits, tracker, speed=speed, rounds=rounds)
            tasks.append(asyncio.create_task(traffic.run()))
            await traffic.started.wait()
            with suppress(ServiceError):  # compiles the dashboard's code; visits report errors
                await client.dashboard(surface.name)
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _open_surface(client: AsyncClient, surface: DemoSurface, store: str | None) -> None:
    """Create a surface, or reuse that of an earlier demo."""
    definition = surface.definition
    try:
        await client.create_surface(**definition)
    except ServiceError as error:
        if error.error_type != "already-exists":
            raise
        existing = await client.surface(surface.name)
        names = [item["name"] for item in existing["items"]]
        existing["items"] = names[: surface.problem.n_items]  # items may have been added
        for setting in ("items", "n_positions", "user_types", "treatment", "utility"):
            if existing[setting] != definition[setting]:
                rule = f"must not hold another surface {surface.name}: its {setting} differ"
                raise InvalidInputError("store", rule, None if store is None else redacted(store)) from None


async def _until_stopped(work: Coroutine[Any, Any, Any], on_progress: Callable[[], None]) -> bool:
    """Await a coroutine until a signal; return whether it finished."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, task.cancel)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_PROGRESS_SECONDS)
            on_progress()
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
def _sigterm_as_interrupt() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files are removed."""
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
