"""A Spark cluster on this machine: a standalone master and two workers, each a process of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.servers import TIMEOUT_SECONDS, free_port

N_WORKERS = 2
_SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass
class SparkCluster:
    """Addresses and processes of a running cluster."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    directory: Path

    def kill_worker(self) -> None:
        """Kill the first worker, with its executors."""
        os.killpg(self.workers[0].pid, signal.SIGKILL)
        self.workers[0].wait(TIMEOUT_SECONDS)


@contextmanager
def spark_cluster(directory: Path) -> Iterator[SparkCluster]:
    """Start a master and two workers on the loopback address; stop them at the end."""
    java = shutil.which("java")
    if java is None:
        pytest.fail("java not found: run `make java`")
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    command = [java, *_SMALL_JVM, "-cp", f"{home}/jars/*"]
    master = f"spark://127.0.0.1:{port}"
    # Workers search for a build directory of Spark, unless they know the version of Scala.
    (library,) = home.glob("jars/scala-library-*.jar")
    scala = ".".join(library.stem.removeprefix("scala-library-").split(".")[:2])
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["SPARK_SCALA_VERSION"] = scala
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a group that is killed with its executors
            )
        processes.append(process)
        return process

    try:
        place = ("--host", "127.0.0.1", "--webui-port", str(free_port()))
        start("master", "org.apache.spark.deploy.master.Master", *place, "--port", str(port))
        _wait_for_port(port, directory)
        workers = [
            start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--webui-port", str(free_port()), "--cores", "1"),
                *("--memory", "1g", "--work-dir", str(directory / f"work-{number}"), master),
            )
            for number in range(N_WORKERS)
        ]
        yield SparkCluster(master, workers, directory)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(TIMEOUT_SECONDS)


@contextmanager
def spark_session(master: str) -> Iterator[Any]:
    """Open a Spark session with small executors; stop it, and its Java process, at the end."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    builder = SparkSession.builder.master(master).appName("banditrank-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            process = getattr(gateway, "proc", None)
            if process is not None:
                process.stdin.close()
                process.wait(TIMEOUT_SECONDS)
            SparkContext._gateway = SparkContext._jvm = None


def _wait_for_port(port: int, directory: Path) -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < end:
        with socket.socket() as trial:
            if not trial.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail((directory / "master.log").read_text(errors="replace")[-2000:])
