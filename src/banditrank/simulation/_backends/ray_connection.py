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
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from banditrank._extras import requires
from banditrank.errors import BanditRankError, InvalidInputError, describe_error
from banditrank.simulation._backends.local import available_cpus

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_SECONDS = 30.0  # a process imports Ray and joins: slow on a busy machine
OBJECT_STORE_BYTES = 100 * 2**20  # experiments and results are small
_RULE = "must be that of a Ray cluster: host:port, or auto"

# Prints the addresses of a cluster's nodes. Where there is no cluster, Ray retries for minutes and ignores
# Ctrl-C: a process of its own can be terminated.
_LIST_NODES = """
import logging
import sys
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
print(*{node["NodeManagerAddress"] for node in ray.nodes()})
"""
# On Linux, Ray replaces 127.0.0.1 by the network address of the machine, and listens there, unless it was
# imported with this variable.
_CLUSTERS_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_imported_ray: Any = None  # the module, if it was imported here


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
        If Ray is not installed, cannot be started, or was imported so that it does not keep to the loopback
        address.
    """
    ray = _import_ray()
    if ray.is_initialized():
        joined = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", joined):
            raise InvalidInputError("address", f"must be left out: Ray is connected to {joined}", address)
        yield ray
        return
    target = address or os.environ.get("RAY_ADDRESS") or "local"
    with _restored_settings():
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        with _started(ray) if target == "local" else _joined(ray, target):
            yield ray


def _import_ray() -> Any:
    """Import Ray, with the variable that keeps it on the loopback address if it is the first import."""
    global _imported_ray  # noqa: PLW0603 - Ray reads the variable once, when it is imported
    with requires("ray", "the ray backend"):
        if sys.modules.get("ray") is not None:
            return import_module("ray")
        with _loopback_variable():
            _imported_ray = import_module("ray")
        return _imported_ray


@contextmanager
def _loopback_variable() -> Iterator[None]:
    before = os.environ.get(_CLUSTERS_VARIABLE)
    os.environ[_CLUSTERS_VARIABLE] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CLUSTERS_VARIABLE]
        else:
            os.environ[_CLUSTERS_VARIABLE] = before


def _check_loopback(ray: Any) -> None:
    """Raise if Ray was imported so that it replaces the loopback address."""
    default = "0" if sys.platform in {"darwin", "win32"} else "1"
    has_clusters = os.environ.get(_CLUSTERS_VARIABLE, default).lower() in {"1", "true"}
    if has_clusters and ray is not _imported_ray:
        raise BanditRankError(
            f"Ray was imported without {_CLUSTERS_VARIABLE}=0, so it would not keep to {LOOPBACK}: "
            "set the variable before, or connect with ray.init"
        )


@contextmanager
def _started(ray: Any) -> Iterator[None]:
    _check_loopback(ray)
    short = Path("/tmp")  # noqa: S108 - socket paths must be short
    directory = tempfile.mkdtemp(prefix="banditrank-ray-", dir=short if short.is_dir() else None)
    os.environ[_CLUSTERS_VARIABLE] = "0"  # for child processes
    os.environ["RAY_TMPDIR"] = directory
    try:
        ray.init(
            address="local",
            num_cpus=available_cpus(),
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
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
    if LOOPBACK in _node_addresses(address):
        _check_loopback(ray)
    try:
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
            env=os.environ | {_CLUSTERS_VARIABLE: "0"},
            capture_output=True,
            text=True,
            timeout=CONNECT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer within {CONNECT_TIMEOUT_SECONDS:g} seconds, or this machine is not part of it"
        raise InvalidInputError("address", f"{_RULE} ({reason})", address) from None
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
        raise InvalidInputError("address", f"{_RULE} ({reason})", address)
    return answer.stdout.splitlines()[-1].split()  # before it, Ray may report lost processes


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
