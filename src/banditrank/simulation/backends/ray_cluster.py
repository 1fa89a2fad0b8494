"""Replications on the machines of a Ray cluster."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from banditrank import __version__
from banditrank.checks import check_workers
from banditrank.compilation import package_digest
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.pickling import pickle_experiment
from banditrank.simulation.backends.ray_connection import connected
from banditrank.simulation.backends.ray_stop import StopSignal
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication

MAX_RETRIES = 10  # how often a replication is begun anew because its process or its machine was lost
WAIT_SECONDS = 1.0  # seconds after which it is seen that the cluster has grown
STOP_TIMEOUT_SECONDS = 10.0  # seconds that replications are given to stop


class RayBackend(Backend):
    """A Ray cluster: each replication is a task of one processor.

    What was lost with a process or a machine is begun anew elsewhere, with the same result. The machines need
    banditrank in the version that is here. Progress is told by whole replications.

    Parameters
    ----------
    address
        Of the cluster that this machine is part of: ``host:port``, or ``auto`` for the one that was started
        here. When left out, the cluster that this program is connected to, or that ``RAY_ADDRESS`` names, or
        else Ray is started on this machine.
    workers
        How many replications run at once; as many as the cluster has processors when left out.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address = address
        self.workers = check_workers("workers", workers)
        self._ray: Any = None
        self._connection = ExitStack()

    def open(self) -> None:
        """Connect to the cluster, or raise an error in one line."""
        if self._ray is None:
            self._ray = self._connection.enter_context(connected(self.address))

    def close(self) -> None:
        """Leave the cluster, and stop Ray if it was started for this."""
        self._ray = None
        self._connection.close()

    def run(self, experiment: Experiment, numbers: Sequence[int], advance: Advance) -> Generator[Replication]:
        """Yield the replications with these numbers as they finish."""
        if self._ray is None:
            with self:
                yield from self.run(experiment, numbers, advance)
            return
        ray = self._ray
        payload = ray.put(pickle_experiment(experiment))
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_make_task())
        missing, underway, stop = deque(numbers), dict[Any, int](), StopSignal()
        try:
            while missing or underway:
                while missing and len(underway) < self._at_once():
                    number = missing.popleft()
                    begun = task.remote(__version__, package_digest(), payload, number, stop.key)
                    underway[begun] = number
                for finished in ray.wait(list(underway), timeout=WAIT_SECONDS)[0]:
                    replication = self._receive(finished, underway[finished])
                    del underway[finished]
                    advance(experiment.horizon)
                    yield replication
        finally:
            if underway:
                self._stop(list(underway), stop)

    def _stop(self, underway: list[Any], stop: StopSignal) -> None:
        """Wait until nothing is running, within reason: what compiles, say, looks for no sign meanwhile."""
        with suppress(self._ray.exceptions.RayError):  # what is lost has stopped too
            stop.put_up()
            _, still_running = self._ray.wait(underway, num_returns=len(underway), timeout=STOP_TIMEOUT_SECONDS)
            if not still_running:
                stop.take_down()

    def _at_once(self) -> int:
        """Return how many tasks to have underway: enough that no processor waits for the next."""
        if self.workers is not None:
            return self.workers
        return max(1, 2 * int(self._ray.cluster_resources().get("CPU", 0)))

    def _receive(self, finished: Any, number: int) -> Replication:
        try:
            outcome, *details = self._ray.get(finished)
        except self._ray.exceptions.RayError as error:
            last = (str(error).strip().splitlines() or [""])[-1]
            reason = f"{type(error).__name__}: {last}"
            raise BanditRankError(f"replication {number} was lost on the cluster ({reason})") from error
        if outcome == "refused":
            machine, found = details
            here = f"{__version__}, of the same files ({package_digest()})"
            raise InvalidInputError(f"banditrank on {machine}", f"must be as it is here: {here}", found)
        if outcome == "failed":
            raise details[0]
        replication: Replication = details[0]
        if replication.counts is not None:  # Ray's arrays cannot be added to
            replication = replace(replication, counts=replication.counts.copy())
        return replication


def _make_task() -> Callable[[str, str, bytes, int, str], tuple[Any, ...]]:
    """Return what runs on the cluster.

    A function within a function is sent as it stands: it also runs where banditrank is missing or another.
    """

    def play_there(version: str, digest: str, payload: bytes, number: int, stop: str) -> tuple[Any, ...]:
        import platform  # noqa: PLC0415 - it takes nothing along
        import traceback  # noqa: PLC0415 - as above

        try:
            import banditrank  # noqa: PLC0415 - as above
        except ImportError:
            return "refused", platform.node(), "none"
        found = banditrank.__version__
        if found == version:
            from banditrank.compilation import package_digest  # noqa: PLC0415 - as above

            found = f"{version}, of other files ({package_digest()})" if package_digest() != digest else ""
        if found:
            return "refused", platform.node(), found
        from banditrank.errors import BanditRankError  # noqa: PLC0415 - as above
        from banditrank.simulation.backends.pickling import play  # noqa: PLC0415 - as above
        from banditrank.simulation.backends.ray_stop import StoppedError, look_for  # noqa: PLC0415 - as above

        try:
            return "finished", play(payload, number, look_for(stop))
        except StoppedError:
            return ("stopped",)
        except BanditRankError as error:
            return "failed", error
        except Exception as error:  # noqa: BLE001 - whatever a policy raises is told here
            error.add_note(f"on {platform.node()}:\n{traceback.format_exc()}")
            return "failed", error

    return play_there
