"""How a Ray cluster is joined, or started on this machine, and left as it was found."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from banditrank.errors import BanditRankError, InvalidInputError, describe_error
from banditrank.simulation.backends.local import available_cpus

LOOPBACK = "127.0.0.1"
PATIENCE = 20.0  # seconds within which a cluster must answer
OBJECT_STORE_BYTES = 100 * 2**20  # bytes: experiments and their results are small
RULE = "must be that of a Ray cluster: host:port, or auto"

# Asks a cluster for the addresses of its nodes. Where there is none, Ray asks again for minutes and does not
# listen to Ctrl-C, so a process of its own asks, which can be ended.
_QUESTION = """
import sys
from ray._private.services import canonicalize_bootstrap_address_or_die
from ray._raylet import GcsClient
client = GcsClient(address=canonicalize_bootstrap_address_or_die(sys.argv[1]))
print(*{node.node_manager_address for node in client.get_all_node_info().values()})
"""
_ONE_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # lets Ray take 127.0.0.1 for what it is


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give the ``ray`` module, connected.

    A connection that this program has already is used, and left. Otherwise a cluster is joined, or Ray is
    started on the loopback address of this machine, and that is undone at the end.

    Parameters
    ----------
    address
        Of the cluster, or ``auto`` for the one that was started on this machine. When left out, what
        ``RAY_ADDRESS`` says; if it says nothing, Ray is started.
    """
    ray = _import_ray()
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", joined):
            raise InvalidInputError("address", f"must be left out: Ray is connected to {joined}", address)
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    with _left_as_found(), _messages_to_log():
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with _started(ray) if where == "local" else _joined(ray, where):
            yield ray


def _import_ray() -> Any:
    try:
        return import_module("ray")  # an optional dependency
    except ImportError:
        raise BanditRankError("the backend ray needs Ray: pip install banditrank[ray]") from None


@contextmanager
def _started(ray: Any) -> Iterator[None]:
    short = Path("/tmp")  # noqa: S108 - sockets must have short names, which some systems' directories are not
    directory = tempfile.mkdtemp(prefix="banditrank-ray-", dir=short if short.is_dir() else None)
    try:
        with _on_loopback():
            ray.init(
                address="local",
                num_cpus=available_cpus(),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                _node_ip_address=LOOPBACK,
                _temp_dir=directory,
            )
    except Exception as error:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)
        raise BanditRankError(f"Ray could not be started on this machine ({describe_error(error)})") from error
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    alone = LOOPBACK in _addresses_of_nodes(address)
    try:
        with _on_loopback() if alone else nullcontext():
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        ray.shutdown()
        raise InvalidInputError("address", f"{RULE} ({describe_error(error)})", address) from error
    try:
        yield
    finally:
        ray.shutdown()


def _addresses_of_nodes(address: str) -> list[str]:
    """Return where a cluster's machines are, or raise an error if no cluster answers."""
    if address != "auto":
        _check_that_somebody_listens(address)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _QUESTION, address],
            env={**os.environ, **_ONE_MACHINE},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        rule = f"{RULE} (no answer within {PATIENCE:g} seconds)"
        raise InvalidInputError("address", rule, address) from None
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
        raise InvalidInputError("address", f"{RULE} ({reason})", address)
    return answer.stdout.split()


def _check_that_somebody_listens(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInputError("address", RULE, address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidInputError("address", f"{RULE} ({reason})", address) from None


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let Ray take 127.0.0.1 for what it is, while it starts or joins.

    On Linux it takes it for this machine's address in the network, and would be open to the network.
    """
    constants: Any = import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    os.environ.update(_ONE_MACHINE)  # for the processes that it starts
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _messages_to_log() -> Iterator[None]:
    """Log what Ray says of processes and machines that were lost; it would print it to standard output."""
    worker: Any = import_module("ray._private.worker")
    log = logging.getLogger(__name__)

    def note(message: dict[str, Any], **_: object) -> None:
        log.info("Ray: %s", " ".join(message["lines"]))

    before = worker.print_to_stdstream
    worker.print_to_stdstream = note
    try:
        yield
    finally:
        worker.print_to_stdstream = before


@contextmanager
def _left_as_found() -> Iterator[None]:
    """Undo what Ray does to the program that it is part of."""
    environment = _environment_of_ray()
    logger = logging.getLogger("ray")
    level = logger.level
    on_termination = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        for name in _environment_of_ray().keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        logger.setLevel(level)
        if on_termination is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_termination)


def _environment_of_ray() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("RAY_") or name == "PYTHONBREAKPOINT"
    }
