"""Replications on the machines of a Ray cluster."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from banditrank import __version__
from banditrank._checks import check_workers
from banditrank._compilation import package_digest
from banditrank.errors import BanditRankError, InvalidInputError
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._backends.pickling import pickle_experiment
from banditrank.simulation._backends.ray_connection import connected
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import AnyExperiment, Replication

MAX_RETRIES = 10  # of a replication whose process or machine was lost
WAIT_SECONDS = 1.0  # between checks whether the cluster has grown
STOP_TIMEOUT_SECONDS = 10.0  # for running replications to stop
STOP_POLL_SECONDS = 0.5  # between a replication's checks of the stop signal


class StoppedError(Exception):
    """A replication was stopped before its end."""


class StopSignal:
    """A key in the cluster's key-value store that running replications poll.

    ``ray.cancel`` is not an option: if it meets a task that is just finishing, Ray 2.60 terminates the
    calling process, and finished replications are lost.
    """

    def __init__(self) -> None:
        self.key = f"banditrank-stop-{uuid.uuid4().hex}"

    def set(self) -> None:
        """Make polling replications stop."""
        _key_value_store()._internal_kv_put(self.key, b"stop")  # noqa: SLF001 - used by Ray's own libraries

    def clear(self) -> None:
        """Remove the key."""
        _key_value_store()._internal_kv_del(self.key)  # noqa: SLF001 - as above


def stop_poller(key: str) -> Advance:
    """Poll a stop signal now, and return a progress callback that polls it from time to time.

    Raises
    ------
    StoppedError
        If the signal is set, now or in a later call of the callback.
    """
    next_poll = 0.0

    def poll(_: int) -> None:
        nonlocal next_poll
        if time.monotonic() >= next_poll:
            next_poll = time.monotonic() + STOP_POLL_SECONDS
            is_set = False
            with suppress(Exception):  # a store that does not answer is not a signal
                is_set = _key_value_store()._internal_kv_exists(key)  # noqa: SLF001 - as above
            if is_set:
                raise StoppedError

    poll(0)
    return poll


def _key_value_store() -> Any:
    return import_module("ray.experimental.internal_kv")


class RayBackend(Backend):
    """A Ray cluster: each replication is a task of one processor.

    A replication that is lost with a process or a machine is retried elsewhere, with the same result. All
    machines need this version of banditrank. Progress is reported per replication.

    Parameters
    ----------
    address
        Address of a cluster that this machine is part of: ``host:port``, or ``auto`` for the one that was
        started on this machine. By default the cluster that this process is connected to, or ``RAY_ADDRESS``;
        if there is neither, Ray is started on this machine.
    workers
        Maximum number of concurrent replications; the number of processors of the cluster by default.

    Raises
    ------
    InvalidInputError
        If the number of workers is out of range.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address = address
        self.workers = check_workers("workers", workers)
        self._ray: Any = None
        self._connection = ExitStack()

    def open(self) -> None:
        """Connect to the cluster.

        Raises
        ------
        InvalidInputError
            If no cluster answers at the address.
        BanditRankError
            If Ray is not installed, or cannot be started.
        """
        if self._ray is None:
            self._ray = self._connection.enter_context(connected(self.address))

    def close(self) -> None:
        """Disconnect from the cluster, and stop Ray if `open` started it."""
        self._ray = None
        self._connection.close()

    def run(
        self, experiment: AnyExperiment, indices: Sequence[int], advance: Advance
    ) -> Generator[Replication]:
        """Yield the replications with these indices as they finish.

        Raises
        ------
        PicklingError
            If the experiment cannot be pickled, or not be unpickled on the cluster.
        InvalidInputError
            If a machine has another version of banditrank.
        BanditRankError
            If a replication was lost more than `MAX_RETRIES` times.
        """
        if self._ray is None:
            with self:
                yield from self.run(experiment, indices, advance)
            return
        ray = self._ray
        payload = ray.put(pickle_experiment(experiment))
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_make_task())
        missing, running, stop = deque(indices), dict[Any, int](), StopSignal()
        try:
            while missing or running:
                while missing and len(running) < self._max_running():
                    index = missing.popleft()
                    started = task.remote(__version__, package_digest(), payload, index, stop.key)
                    running[started] = index
                for finished in ray.wait(list(running), timeout=WAIT_SECONDS)[0]:
                    replication = self._receive(finished, running[finished])
                    del running[finished]
                    advance(experiment.horizon)
                    yield replication
        finally:
            if running:
                self._stop(list(running), stop)

    def _stop(self, running: list[Any], stop: StopSignal) -> None:
        """Stop running replications, with a timeout: a task that compiles does not poll the signal."""
        with suppress(self._ray.exceptions.RayError):  # a lost task has stopped as well
            stop.set()
            _, still_running = self._ray.wait(running, num_returns=len(running), timeout=STOP_TIMEOUT_SECONDS)
            if not still_running:
                stop.clear()

    def _max_running(self) -> int:
        """Return the number of submitted tasks that keeps every processor busy."""
        if self.workers is not None:
            return self.workers
        return max(1, 2 * int(self._ray.cluster_resources().get("CPU", 0)))

    def _receive(self, finished: Any, index: int) -> Replication:
        try:
            outcome, *details = self._ray.get(finished)
        except self._ray.exceptions.RayError as error:
            last = (str(error).strip().splitlines() or [""])[-1]
            reason = f"{type(error).__name__}: {last}"
            raise BanditRankError(f"replication {index} was lost on the cluster ({reason})") from error
        if outcome == "refused":
            machine, found = details
            here = f"{__version__}, source digest {package_digest()}"
            raise InvalidInputError(f"banditrank on {machine}", f"must be the same as here: {here}", found)
        if outcome == "failed":
            raise details[0]
        replication: Replication = details[0]
        if replication.counts is not None:  # arrays from Ray are read-only
            replication = replace(replication, counts=replication.counts.copy())
        return replication


def _make_task() -> Callable[[str, str, bytes, int, str], tuple[Any, ...]]:
    """Return the function that runs on the cluster.

    A nested function is pickled by value, so that it also runs where banditrank is missing or differs.
    """

    def run_task(version: str, digest: str, payload: bytes, index: int, stop_key: str) -> tuple[Any, ...]:
        import platform  # noqa: PLC0415 - the function is pickled without its module
        import traceback  # noqa: PLC0415 - as above

        try:
            import banditrank  # noqa: PLC0415 - as above
        except ImportError:
            return "refused", platform.node(), "none"
        found = banditrank.__version__
        if found == version:
            from banditrank._compilation import package_digest  # noqa: PLC0415 - as above

            found = f"{version}, source digest {package_digest()}" if package_digest() != digest else ""
        if found:
            return "refused", platform.node(), found
        from banditrank.errors import BanditRankError  # noqa: PLC0415 - as above
        from banditrank.simulation._backends.pickling import replicate_pickled  # noqa: PLC0415 - as above
        from banditrank.simulation._backends.ray_cluster import StoppedError, stop_poller  # noqa: PLC0415 - as above

        try:
            return "finished", replicate_pickled(payload, index, stop_poller(stop_key))
        except StoppedError:
            return ("stopped",)
        except BanditRankError as error:
            return "failed", error
        except Exception as error:  # noqa: BLE001 - re-raised by the caller
            error.add_note(f"on {platform.node()}:\n{traceback.format_exc()}")
            return "failed", error

    return run_task
