"""Supervisor of worker processes: heartbeats, replacement, rolling restarts and shutdown.

Each worker imports this module before it sends its first heartbeat: it imports nothing that takes time.
"""

import logging
import math
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

from banditrank.errors import BanditRankError, one_line

logger = logging.getLogger(__name__)

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HANDLED_SIGNALS = (*_STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD)
# Terminals send them to the whole process group; what they do to workers is the supervisor's decision.
_GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP)
# `timeout`, among others, sends a signal to its child and at once again to the process group.
_REPEATED_SIGNAL_SECONDS = 0.5
_MAX_MISSED_HEARTBEATS = 10
# The interpreter takes that long to start if many workers start on a slow machine: with a lower limit, all
# of them would be replaced for ever.
_MAX_MISSED_BEFORE_FIRST = 120
_BACKOFF_SECONDS = (0.0, 0.5, 1.0, 2.0, 3.0)
_MAX_MESSAGE_LENGTH = 1000
_MAX_RECEIVED_BYTES = 65_536


class WorkerLink:
    """Connection of a worker process to its supervisor.

    A daemon thread sends heartbeats, each with the status of the worker. If the supervisor ends, it sends
    SIGTERM to the worker, and SIGKILL if the worker does not end.

    Parameters
    ----------
    connection
        The worker's end of a pair of sockets.
    heartbeat_seconds
        Interval of heartbeats.
    stop_timeout_seconds
        Time between SIGTERM and SIGKILL.
    """

    def __init__(
        self, connection: socket.socket, heartbeat_seconds: float, stop_timeout_seconds: float
    ) -> None:
        connection.settimeout(heartbeat_seconds)
        connection.set_inheritable(False)
        self._connection = connection
        self._stop_timeout_seconds = stop_timeout_seconds
        self._status = b"starting\n"
        self._drain: Callable[[], object] = _terminate_self
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def ready(self) -> None:
        """Report that the worker serves."""
        self._status = b"ready\n"
        self._send_status()

    def fail(self, message: str) -> None:
        """Report that the worker cannot start, in one line; the worker is expected to exit."""
        line = one_line(message)[:_MAX_MESSAGE_LENGTH] or "worker failed to start"
        self._status = f"failed {line}\n".encode(errors="replace")
        self._send_status()

    def on_drain(self, callback: Callable[[], object]) -> None:
        """Call a function when the supervisor asks the worker to finish its requests and exit.

        Parameters
        ----------
        callback
            Called at most once, after `ready`, in the heartbeat thread: must neither block nor raise. By
            default, the worker sends SIGTERM to itself.
        """
        self._drain = callback

    def _run(self) -> None:
        while True:
            self._send_status()
            try:
                if not self._connection.recv(_MAX_RECEIVED_BYTES):
                    break
                self._drain()
            except TimeoutError:
                continue
            except OSError:  # the supervisor ended without having read all heartbeats
                break
        _terminate_self()
        time.sleep(self._stop_timeout_seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    def _send_status(self) -> None:
        # A status that is lost, because the supervisor is stopped and the buffer full, is sent again with the
        # next heartbeat.
        with suppress(OSError):
            self._connection.send(self._status)


Target = Callable[[WorkerLink], object]


class Supervisor:
    """Supervisor of worker processes.

    Replaces workers that die or do not respond. At SIGTERM or SIGINT, stops all workers; at the second of
    these signals, kills them. At SIGHUP, replaces one worker after the other, each once its replacement is
    ready.

    Parameters
    ----------
    target
        Called in the main thread of each worker. Pickled: a listening socket may be bound to it by
        `functools.partial`, and must stay open while the supervisor runs.
    n_workers
        Number of workers.
    stop_timeout_seconds
        Time between SIGTERM and SIGKILL.
    drain_timeout_seconds
        Time that a worker has to drain in a rolling restart before SIGTERM.
    heartbeat_seconds
        Interval of heartbeats; a worker that misses ten is killed and replaced.
    """

    def __init__(
        self,
        target: Target,
        n_workers: int,
        *,
        stop_timeout_seconds: float = 8.0,
        drain_timeout_seconds: float = 15.0,
        heartbeat_seconds: float = 0.5,
    ) -> None:
        self._target = target
        self._stop_timeout_seconds = stop_timeout_seconds
        self._drain_timeout_seconds = drain_timeout_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._slots = [_Slot() for _ in range(n_workers)]
        self._retiring: list[_Worker] = []
        self._has_been_ready = False
        self._stopped_at: float | None = None
        self._error: str | None = None
        self._is_restart_requested = False
        self._is_restarting = False
        self._outdated: deque[_Worker] = deque()

    def run(self) -> None:
        """Run the workers until SIGTERM or SIGINT; call it once, in the main thread.

        Raises
        ------
        BanditRankError
            If a worker fails to start before any worker has been ready.
        """
        # Otherwise started together with the first worker, which unblocks signals.
        resource_tracker.ensure_running()
        with _signal_receiver() as signals:
            try:
                self._run(signals)
            finally:
                for worker in self._workers():
                    worker.kill()
                    worker.close()
        if self._error is not None:
            raise BanditRankError(self._error)

    def _run(self, signals: socket.socket) -> None:
        next_heartbeat = time.monotonic() + self._heartbeat_seconds
        while self._stopped_at is None or self._workers():
            self._start_missing()
            self._continue_restart()
            connections = [worker.connection for worker in self._workers() if worker.is_connected]
            wait([signals, *connections], max(0.0, next_heartbeat - time.monotonic()))
            self._handle_signals(signals)
            # Counted, not timed: nothing is missed while the supervisor or the machine is paused.
            is_heartbeat_due = time.monotonic() >= next_heartbeat
            for worker in self._workers():
                self._check(worker, is_heartbeat_due=is_heartbeat_due)
            if is_heartbeat_due:
                next_heartbeat = time.monotonic() + self._heartbeat_seconds

    def _workers(self) -> list["_Worker"]:
        """Return all workers that have not been joined."""
        current = [worker for slot in self._slots for worker in (slot.worker, slot.replacement)]
        return [worker for worker in (*current, *self._retiring) if worker is not None]

    def _handle_signals(self, signals: socket.socket) -> None:
        with suppress(BlockingIOError):
            for number in signals.recv(_MAX_RECEIVED_BYTES):
                if number == signal.SIGHUP:
                    self._is_restart_requested = True
                elif number in _STOP_SIGNALS:
                    self._stop_or_kill(signal.Signals(number).name)

    def _stop_or_kill(self, signal_name: str) -> None:
        if self._stopped_at is None:
            logger.info("stopping workers", extra={"signal": signal_name})
            self._stop()
        elif time.monotonic() - self._stopped_at >= _REPEATED_SIGNAL_SECONDS:
            logger.warning("killing workers", extra={"signal": signal_name})
            for worker in self._workers():
                worker.kill()

    def _stop(self) -> None:
        self._stopped_at = time.monotonic()
        for worker in self._workers():
            worker.terminate()

    # Life of a worker

    def _start_missing(self) -> None:
        for slot in self._slots:
            if self._stopped_at is None and slot.worker is None and time.monotonic() >= slot.start_at:
                slot.worker = self._start(slot)

    def _start(self, slot: "_Slot", *, is_replacement: bool = False) -> "_Worker | None":
        try:
            worker = _Worker(slot, self._target, self._heartbeat_seconds, self._stop_timeout_seconds)
        except OSError as error:  # no memory, or too many processes or open files
            self._on_failed_start(slot, one_line(error), {}, is_replacement=is_replacement)
            return None
        level = logging.DEBUG if slot.n_failures else logging.INFO
        logger.log(level, "worker started", extra={"pid": worker.pid})
        return worker

    def _check(self, worker: "_Worker", *, is_heartbeat_due: bool) -> None:
        # Before messages are received: they are complete if it has exited.
        exit_code = worker.process.exitcode
        if worker.receive():
            self._on_ready(worker)
        if exit_code is not None or worker.state == "failed":
            self._on_end(worker, exit_code)
            return
        worker.send_due_signals()
        if is_heartbeat_due and worker.miss_heartbeat():
            seconds = worker.n_missed_heartbeats * self._heartbeat_seconds
            fields = {"pid": worker.pid, "seconds": seconds, "state": worker.state}
            logger.error("worker does not respond", extra=fields)
            worker.kill()

    def _on_ready(self, worker: "_Worker") -> None:
        logger.info("worker ready", extra={"pid": worker.pid})
        self._has_been_ready = True
        slot = worker.slot
        if worker is slot.worker:
            slot.n_failures = 0
        elif worker is slot.replacement and slot.worker is not None:
            outdated, slot.worker, slot.replacement = slot.worker, worker, None
            self._retiring.append(outdated)
            outdated.drain(self._drain_timeout_seconds)

    def _on_end(self, worker: "_Worker", exit_code: int | None) -> None:
        """Handle the exit of a worker, or its failure, after which it is given time to exit."""
        fields = {"pid": worker.pid, "exit_code": exit_code, "state": worker.state}
        if exit_code is None:
            worker.exit_soon()
        else:
            worker.close()
        if worker in self._retiring:
            if exit_code is not None:
                self._retiring.remove(worker)
                logger.info("worker stopped", extra=fields)
            return
        slot = worker.slot
        is_replacement = worker is slot.replacement
        if not is_replacement:
            # A replacement that is starting takes the place at once.
            slot.worker = slot.replacement
        slot.replacement = None
        if exit_code is None:
            self._retiring.append(worker)
        if self._stopped_at is not None:
            logger.info("worker stopped", extra=fields)
        elif worker.state == "ready":
            logger.error("worker died", extra=fields)
        else:
            has_failed = exit_code is None or exit_code > 0
            error = worker.message or (f"worker exited with code {exit_code}" if has_failed else None)
            self._on_failed_start(slot, error, fields, is_replacement=is_replacement)

    def _on_failed_start(
        self, slot: "_Slot", error: str | None, fields: dict[str, Any], *, is_replacement: bool
    ) -> None:
        if error is not None and not self._has_been_ready:
            self._error = error
            self._stop()
            return
        level = logging.DEBUG if slot.n_failures else logging.ERROR
        if error is None:
            logger.log(level, "worker died", extra=fields)
        else:
            logger.log(level, "worker failed to start", extra={**fields, "error": error})
        if is_replacement:
            self._end_restart()
            kept = None if slot.worker is None else slot.worker.pid
            logger.error("restart failed", extra={"pid": kept})
        else:
            slot.start_at = time.monotonic() + _BACKOFF_SECONDS[slot.n_failures]
            slot.n_failures = min(slot.n_failures + 1, len(_BACKOFF_SECONDS) - 1)

    # Rolling restart

    def _continue_restart(self) -> None:
        if self._is_restart_requested and not self._is_restarting:
            self._is_restart_requested = False
            self._is_restarting = True
            self._outdated.extend(slot.worker for slot in self._slots if slot.worker is not None)
            logger.info("restarting workers", extra={"workers": len(self._outdated)})
        is_busy = self._retiring or any(slot.replacement for slot in self._slots)
        if not self._is_restarting or is_busy or self._stopped_at is not None:
            return
        while self._outdated:
            outdated = self._outdated.popleft()
            # Otherwise it died, and what replaced it is up to date.
            if outdated.slot.worker is outdated:
                outdated.slot.replacement = self._start(outdated.slot, is_replacement=True)
                return
        self._end_restart()
        logger.info("workers restarted")

    def _end_restart(self) -> None:
        self._outdated.clear()
        self._is_restarting = False


@dataclass(eq=False)
class _Slot:
    """Place of a worker, with the replacement that a rolling restart starts."""

    worker: "_Worker | None" = None
    replacement: "_Worker | None" = None
    # Consecutive failures to start; the index of the backoff.
    n_failures: int = 0
    start_at: float = 0.0


class _Worker:
    """Worker process and the supervisor's end of its link.

    Raises
    ------
    OSError
        If the process cannot be started.
    """

    def __init__(
        self, slot: _Slot, target: Target, heartbeat_seconds: float, stop_timeout_seconds: float
    ) -> None:
        self.slot = slot
        self.state = "starting"
        self.message = ""
        self.n_missed_heartbeats = 0
        self.is_connected = True
        self._stop_timeout_seconds = stop_timeout_seconds
        self._has_sent_heartbeat = False
        self._received = b""
        self._terminate_at = self._kill_at = math.inf
        self._is_killed = False
        self.connection, connection_of_worker = socket.socketpair()
        self.connection.setblocking(False)
        timing = (heartbeat_seconds, stop_timeout_seconds)
        self.process = get_context("spawn").Process(
            target=_run_worker, args=(connection_of_worker, *timing, _PickledTarget(target))
        )
        # Until the worker handles them: they would end the interpreter that is starting.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _GROUP_SIGNALS)
        try:
            self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            connection_of_worker.close()
        self.pid = cast("int", self.process.pid)

    def receive(self) -> bool:
        """Receive heartbeats without blocking; return whether the worker has become ready."""
        was_starting = self.state == "starting"
        if self.is_connected:
            try:
                received = self.connection.recv(_MAX_RECEIVED_BYTES)
                self.is_connected = bool(received)
                self._received += received
            except BlockingIOError:
                pass
            except OSError:
                self.is_connected = False
        *statuses, self._received = self._received.split(b"\n")
        for status in statuses:
            self.n_missed_heartbeats = 0
            self._has_sent_heartbeat = True
            state, _, message = status.decode(errors="replace").partition(" ")
            self.message = message
            if self.state == "starting":
                self.state = state
        return was_starting and self.state == "ready"

    def miss_heartbeat(self) -> bool:
        """Count an interval since the latest heartbeat; return whether there are too many."""
        self.n_missed_heartbeats += 1
        is_booting = not self._has_sent_heartbeat and not _is_stopped(self.pid)
        maximum = _MAX_MISSED_BEFORE_FIRST if is_booting else _MAX_MISSED_HEARTBEATS
        return self.n_missed_heartbeats >= maximum and not self._is_killed

    def drain(self, timeout_seconds: float) -> None:
        """Ask the worker to finish its requests and exit; terminate it if it is not ready."""
        if self.state != "ready":
            self.terminate()
            return
        self.state = "draining"
        self._terminate_at = time.monotonic() + timeout_seconds
        with suppress(OSError):
            self.connection.send(b"drain\n")

    def terminate(self) -> None:
        """Send SIGTERM, and SIGKILL after the time limit."""
        self._terminate_at = math.inf
        self.exit_soon()
        if self.process.exitcode is None:
            os.kill(self.pid, signal.SIGTERM)
            # Otherwise a stopped process does not handle it.
            os.kill(self.pid, signal.SIGCONT)

    def exit_soon(self) -> None:
        """Send SIGKILL after the time limit."""
        self._kill_at = min(self._kill_at, time.monotonic() + self._stop_timeout_seconds)

    def send_due_signals(self) -> None:
        """Send signals whose time limits have expired."""
        now = time.monotonic()
        if now >= self._terminate_at:
            logger.warning("worker does not drain", extra={"pid": self.pid})
            self.terminate()
        if now >= self._kill_at and not self._is_killed:
            logger.warning("worker does not stop", extra={"pid": self.pid})
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._is_killed = True
        self.process.kill()

    def close(self) -> None:
        """Join the process, which has exited or was killed, and release its descriptors."""
        self.process.join()
        self.process.close()
        self.connection.close()


class _PickledTarget:
    """Target that is passed to a worker as bytes, so that what it imports is imported after a heartbeat."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        # Here, because only while a process is being started are the descriptors of sockets passed to it.
        return bytes, (bytes(ForkingPickler.dumps(self._target)),)


def _run_worker(
    connection: socket.socket, heartbeat_seconds: float, stop_timeout_seconds: float, pickled_target: bytes
) -> None:
    """Run the target; main function of a worker process."""
    for number in _GROUP_SIGNALS:
        # Not SIG_IGN, which processes that the worker starts would inherit.
        signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _GROUP_SIGNALS)
    link = WorkerLink(connection, heartbeat_seconds, stop_timeout_seconds)
    try:
        target: Target = pickle.loads(pickled_target)  # noqa: S301 - from the supervisor
        target(link)
    except BanditRankError as error:
        link.fail(str(error))
        sys.exit(1)


@contextmanager
def _signal_receiver() -> Iterator[socket.socket]:
    """Handle signals within a ``with`` block: their numbers arrive as bytes at the socket."""
    receiver, sender = socket.socketpair()
    with receiver, sender:
        receiver.setblocking(False)
        sender.setblocking(False)
        descriptor = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        handlers = {number: signal.signal(number, _do_nothing) for number in _HANDLED_SIGNALS}
        try:
            yield receiver
        finally:
            for number, handler in handlers.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            signal.set_wakeup_fd(descriptor)


def _do_nothing(_number: int, _frame: object) -> None:
    """Handle a signal that has no effect, or is received by `_signal_receiver`."""


def _is_stopped(pid: int) -> bool:
    """Return whether a child process is stopped, as by SIGSTOP; True if the platform cannot say."""
    if not hasattr(os, "waitid"):
        return True
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False


def _terminate_self() -> None:
    # Not raise_signal, which would not interrupt the main thread.
    os.kill(os.getpid(), signal.SIGTERM)
