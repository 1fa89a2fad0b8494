"""Connections to a Ray cluster: join one, or start Ray on this machine, and undo it at the end."""

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

from banditrank._extras import requires
from banditrank.errors import BanditRankError, InvalidInputError, describe_error
from banditrank.simulation._backends.local import available_cpus

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_SECONDS = 20.0
OBJECT_STORE_BYTES = 100 * 2**20  # experiments and results are small
_RULE = "must be that of a Ray cluster: host:port, or auto"

# Prints the addresses of a cluster's nodes. Where there is no cluster, Ray retries for minutes and ignores
# Ctrl-C: a process of its own can be terminated.
_LIST_NODES = """
import sys
from ray._private.services import canonicalize_bootstrap_address_or_die
from ray._raylet import GcsClient
client = GcsClient(address=canonicalize_bootstrap_address_or_die(sys.argv[1]))
print(*{node.node_manager_address for node in client.get_all_node_info().values()})
"""
_LOOPBACK_ENVIRONMENT = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # Ray keeps 127.0.0.1 as it is


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to Ray, and yield the ``ray`` module.

    An existing connection of this process is used and kept. Otherwise a cluster is joined, or Ray is started
    on the loopback address of this machine, and disconnected at the end.

    Parameters
    ----------
    address
        Address of the cluster, or ``auto`` for the one that was started on this machine. By default
        ``RAY_ADDRESS``; if it is not set, Ray is started.

    Raises
    ------
    InvalidInputError
        If no cluster answers at the address, or this process is connected to another one.
    BanditRankError
        If Ray is not installed, or cannot be started.
    """
    ray = _import_ray()
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", joined):
            raise InvalidInputError("address", f"must be left out: Ray is connected to {joined}", address)
        yield ray
        return
    target = address or os.environ.get("RAY_ADDRESS") or "local"
    with _restored_settings(), _messages_to_log():
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with _started(ray) if target == "local" else _joined(ray, target):
            yield ray


def _import_ray() -> Any:
    with requires("ray", "the ray backend"):
        return import_module("ray")


@contextmanager
def _started(ray: Any) -> Iterator[None]:
    short = Path("/tmp")  # noqa: S108 - socket paths must be short
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
        raise BanditRankError(
            f"Ray could not be started on this machine ({describe_error(error)})"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    is_on_loopback = LOOPBACK in _node_addresses(address)
    try:
        with _on_loopback() if is_on_loopback else nullcontext():
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        ray.shutdown()
        raise InvalidInputError("address", f"{_RULE} ({describe_error(error)})", address) from error
    try:
        yield
    finally:
        ray.shutdown()


def _node_addresses(address: str) -> list[str]:
    """Return the addresses of a cluster's machines, or raise if no cluster answers."""
    if address != "auto":
        _check_port_is_open(address)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _LIST_NODES, address],
            env={**os.environ, **_LOOPBACK_ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=CONNECT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        rule = f"{_RULE} (no answer within {CONNECT_TIMEOUT_SECONDS:g} seconds)"
        raise InvalidInputError("address", rule, address) from None
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
        raise InvalidInputError("address", f"{_RULE} ({reason})", address)
    return answer.stdout.split()


def _check_port_is_open(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInputError("address", _RULE, address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidInputError("address", f"{_RULE} ({reason})", address) from None


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Keep Ray on 127.0.0.1 while it starts or joins.

    On Linux it replaces the loopback address by the machine's network address, and would listen there.
    """
    constants: Any = import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    os.environ.update(_LOOPBACK_ENVIRONMENT)  # for child processes
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _messages_to_log() -> Iterator[None]:
    """Log Ray's messages about lost processes and machines, instead of printing them to standard output."""
    worker: Any = import_module("ray._private.worker")
    log = logging.getLogger(__name__)

    def write_log(message: dict[str, Any], **_: object) -> None:
        log.info("ray message lines=%s", " ".join(message["lines"]))

    before = worker.print_to_stdstream
    worker.print_to_stdstream = write_log
    try:
        yield
    finally:
        worker.print_to_stdstream = before


@contextmanager
def _restored_settings() -> Iterator[None]:
    """Restore the environment, log level and signal handler that Ray changes in this process."""
    environment = _ray_environment()
    logger = logging.getLogger("ray")
    level = logger.level
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        for name in _ray_environment().keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        logger.setLevel(level)
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _ray_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("RAY_") or name == "PYTHONBREAKPOINT"
    }
