"""Supervisor of worker processes: replacement, rolling restarts and shutdown."""

import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import Pipe, get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from banditrank.errors import BanditRankError, one_line

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 0.5
MAX_MISSED_HEARTBEATS = 20
# Of processes that SIGSTOP has stopped.
MAX_MISSED_HEARTBEATS_STOPPED = 4
# From the first heartbeat of a worker, which it sends when it has imported everything.
START_TIMEOUT_SECONDS = 120.0
# Between the request to drain and SIGTERM, and between SIGTERM and SIGKILL.
DRAIN_TIMEOUT_SECONDS = 15.0
STOP_TIMEOUT_SECONDS = 8.0

# Delays after consecutive failed starts. As many workers may be killed before the first is ready.
_BACKOFF_SECONDS = (0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 4.0)
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Terminals send them to the whole process group: only the supervisor handles them.
_GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP)


class WorkerLink:
    """Connection of a worker process to its supervisor.

    A daemon thread sends heartbeats. If the supervisor ends, the thread sends SIGTERM to the worker, and
    SIGKILL if the worker does not exit.
    """

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection
        self._lock = threading.Lock()
        # Not raise_signal, which would not interrupt the main thread.
        self._terminate = partial(os.kill, os.getpid(), signal.SIGTERM)
        self._drain: Callable[[], object] = self._terminate
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def ready(self) -> None:
        """Report that the worker serves."""
        self._send("ready")

    def on_drain(self, callback: Callable[[], object]) -> None:
        """Set the function that makes the worker finish its requests and exit; SIGTERM does by default.

        It is called once, after `ready`, in the heartbeat thread, and must neither block nor raise.
        """
        self._drain = callback

    def _send(self, status: str, error: str = "") -> None:
        # If the supervisor has ended, the heartbeat thread ends the worker.
        with self._lock, suppress(OSError):
            self._connection.send((status, error))

    def _run(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._send("alive")
                if self._connection.poll(HEARTBEAT_SECONDS):
                    self._connection.recv()
                    self._drain()
        self._terminate()
        time.sleep(STOP_TIMEOUT_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)


Target = Callable[[WorkerLink], object]


class Supervisor:
    """Supervisor of worker processes.

    Replaces workers that die, are stopped or miss heartbeats (while they start, imports may delay them). At
    SIGTERM or SIGINT, stops all workers. At SIGHUP, replaces one after the other: each drains once its
    replacement is ready.

    Parameters
    ----------
    target
        Called in the main thread of each worker; raises `BanditRankError` if it cannot start. Is pickled:
        `functools.partial` may bind a listening socket, which must stay open in this process.
    n_workers
        Number of workers.
    """

    def __init__(self, target: Target, n_workers: int) -> None:
        self._target = target
        self._n_workers = n_workers
        # In the order in which they were started.
        self._workers: list[_Worker] = []
        # Incremented by SIGHUP: workers of earlier generations are outdated.
        self._generation = 0
        self._has_been_ready = False
        self._n_failed_starts = 0
        self._start_at = 0.0
        self._is_stopping = False
        self._error = ""

    def run(self) -> None:
        """Run the workers until SIGTERM or SIGINT; call it once, in the main thread.

        Raises
        ------
        BanditRankError
            If workers fail to start before any has been ready.
        """
        # Otherwise started together with the first worker, which unblocks signals.
        resource_tracker.ensure_running()
        with _signal_receiver() as signals:
            try:
                self._run(signals)
            finally:
                for worker in self._workers:
                    worker.process.kill()
                    worker.process.join()
        if self._error:
            raise BanditRankError(self._error)

    def _run(self, signals: socket.socket) -> None:
        next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        while self._workers or not self._is_stopping:
            self._start_and_drain()
            sources: list[Any] = [signals, *(worker.process.sentinel for worker in self._workers)]
            sources += [worker.connection for worker in self._workers if not worker.connection.closed]
            wait(sources, max(0.0, next_heartbeat - time.monotonic()))
            self._handle_signals(signals)
            for worker in list(self._workers):
                self._check(worker)
            # Counted, not timed: no heartbeat is missed while the machine or the supervisor is paused.
            if time.monotonic() >= next_heartbeat:
                next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS
                for worker in self._workers:
                    worker.check_heartbeat()
                    worker.check_deadline()

    def _start_and_drain(self) -> None:
        """Start missing workers; while any is outdated, start one more, and drain one when it is ready."""
        active = [worker for worker in self._workers if worker.state in {"starting", "ready"}]
        # Not while a worker drains or stops: one after the other.
        is_replacing = self._is_any_outdated() and len(active) == len(self._workers)
        for _ in range(self._n_workers + is_replacing - len(active)):
            if not self._is_stopping and time.monotonic() >= self._start_at:
                self._start()
        ready = [worker for worker in active if worker.state == "ready"]
        if len(ready) > self._n_workers:
            # The oldest is outdated: otherwise there would not be one more.
            ready[0].drain()

    def _is_any_outdated(self) -> bool:
        return any(worker.generation < self._generation for worker in self._workers)

    def _start(self) -> None:
        try:
            worker = _Worker(self._target, self._generation)
        # Too little memory, too many processes or open files.
        except OSError as error:
            self._on_failed_start(one_line(error))
            return
        self._workers.append(worker)
        logger.debug("worker started", extra={"pid": worker.pid})

    def _handle_signals(self, signals: socket.socket) -> None:
        with suppress(BlockingIOError):
            for number in signals.recv(4096):
                if number == signal.SIGHUP:
                    self._generation += 1
                    logger.info("restarting workers", extra={"workers": self._n_workers})
                elif number in _STOP_SIGNALS and not self._is_stopping:
                    logger.info("stopping workers", extra={"signal": signal.Signals(number).name})
                    self._stop()

    def _stop(self) -> None:
        self._is_stopping = True
        for worker in self._workers:
            worker.terminate()

    def _check(self, worker: "_Worker") -> None:
        # Before messages are received: they are complete if it has exited.
        exit_code = worker.process.exitcode
        was_starting = worker.state == "starting"
        worker.receive()
        if was_starting and worker.state == "ready":
            logger.info("worker ready", extra={"pid": worker.pid})
            self._has_been_ready = True
            self._n_failed_starts = 0
        if exit_code is not None:
            self._on_exit(worker, exit_code)

    def _on_exit(self, worker: "_Worker", exit_code: int) -> None:
        worker.process.join()
        worker.process.close()
        worker.connection.close()
        self._workers.remove(worker)
        fields = {"pid": worker.pid, "exit_code": exit_code, "state": worker.state}
        if worker.state == "starting":
            error = worker.error or f"worker exited with code {exit_code} before it was ready"
            self._on_failed_start(error, is_killed=exit_code < 0 and not worker.error, **fields)
        elif worker.state == "ready":
            logger.error("worker died", extra=fields)
        else:
            logger.info("worker stopped", extra=fields)
            if worker.generation < self._generation and not self._is_any_outdated():
                logger.info("workers restarted", extra={"workers": self._n_workers})

    def _on_failed_start(self, error: str, *, is_killed: bool = False, **fields: object) -> None:
        is_last = not is_killed or self._n_failed_starts == len(_BACKOFF_SECONDS)
        if is_last and not self._has_been_ready:
            self._error = error
            self._stop()
            return
        level = logging.DEBUG if self._n_failed_starts else logging.ERROR
        logger.log(level, "worker failed to start", extra={**fields, "error": error})
        delay = _BACKOFF_SECONDS[min(self._n_failed_starts, len(_BACKOFF_SECONDS) - 1)]
        self._n_failed_starts += 1
        self._start_at = time.monotonic() + delay


class _Worker:
    """Worker process, whose state is "starting", "ready", "draining" or "stopping"."""

    def __init__(self, target: Target, generation: int) -> None:
        self.generation = generation
        self.state = "starting"
        self.error = ""
        self._n_missed_heartbeats = 0
        self._deadline = math.inf
        self.connection, connection_of_worker = Pipe()
        self.process = get_context("spawn").Process(target=_run_worker, args=(target, connection_of_worker))
        # Until the worker ignores them: they would interrupt its imports.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _GROUP_SIGNALS)
        try:
            with connection_of_worker:
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.pid = cast("int", self.process.pid)

    def receive(self) -> None:
        """Receive messages without blocking."""
        try:
            while self.connection.poll():
                status, error = self.connection.recv()
                self._n_missed_heartbeats = 0
                if self.state == "starting" and self._deadline == math.inf:
                    self._set_state("starting", START_TIMEOUT_SECONDS)
                if status == "failed":
                    self.error = error
                    self._set_state(self.state, STOP_TIMEOUT_SECONDS)
                elif status == "ready" and self.state == "starting":
                    self._set_state("ready", math.inf)
        # It has exited, or cannot be supervised any more.
        except (EOFError, OSError):
            self.connection.close()
            self.process.kill()

    def drain(self) -> None:
        """Ask the worker to finish its requests and exit."""
        self._set_state("draining", DRAIN_TIMEOUT_SECONDS)
        with suppress(OSError):
            self.connection.send("drain")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._set_state("stopping", STOP_TIMEOUT_SECONDS)
        if self.process.exitcode is None:
            os.kill(self.pid, signal.SIGTERM)
            # Otherwise a stopped process does not handle it.
            os.kill(self.pid, signal.SIGCONT)

    def _set_state(self, state: str, time_limit_seconds: float) -> None:
        self.state = state
        self._deadline = time.monotonic() + time_limit_seconds

    def check_deadline(self) -> None:
        """Terminate the worker if it does not drain in time; kill it if it does not start or stop."""
        if time.monotonic() < self._deadline:
            return
        if self.state == "draining":
            logger.warning("worker does not drain", extra={"pid": self.pid})
            self.terminate()
        elif self.state == "starting":
            self.error = self.error or f"worker did not start within {START_TIMEOUT_SECONDS:g} seconds"
            self.process.kill()
        else:
            logger.warning("worker does not stop", extra={"pid": self.pid})
            self.process.kill()

    def check_heartbeat(self) -> None:
        """Count an interval since the latest heartbeat; kill the worker if there are too many."""
        self._n_missed_heartbeats += 1
        # Imports delay heartbeats, on a loaded machine by a minute.
        maximum = math.inf if self.state == "starting" else MAX_MISSED_HEARTBEATS
        if _is_stopped(self.pid):
            maximum = MAX_MISSED_HEARTBEATS_STOPPED
        if self._n_missed_heartbeats >= maximum:
            logger.error("worker does not respond", extra={"pid": self.pid, "state": self.state})
            self.process.kill()


def _run_worker(target: Target, connection: "Connection[Any, Any]") -> None:
    """Run the target; main function of a worker process."""
    for number in _GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _GROUP_SIGNALS)
    link = WorkerLink(connection)
    try:
        target(link)
    except BanditRankError as error:
        link._send("failed", one_line(error))  # noqa: SLF001 - not an interface of targets
        sys.exit(1)


@contextmanager
def _signal_receiver() -> Iterator[socket.socket]:
    """Receive the numbers of signals, as bytes, at a socket that does not block."""
    receiver, sender = socket.socketpair()
    with receiver, sender:
        receiver.setblocking(False)
        sender.setblocking(False)
        descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        # SIGCHLD, because exit codes are lost where it is ignored.
        handled = (*_STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD)
        handlers = {number: signal.signal(number, lambda *_: None) for number in handled}
        try:
            yield receiver
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler or signal.SIG_DFL)
            signal.set_wakeup_fd(descriptor)


def _is_stopped(pid: int) -> bool:
    """Return whether a child process is stopped, as by SIGSTOP; False if the platform cannot say."""
    with suppress(AttributeError, ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False
