"""`banditrank serve` process of a campaign."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx
from helpers.servers import free_port

_START_SECONDS = 120.0
_RESPONSE_SECONDS = 10.0
_STOP_SECONDS = 120.0
_LOG_TAIL = 2000  # characters


class ServiceProcess:
    """A service at a free port of the loopback address.

    Parameters
    ----------
    store
        Address of the store.
    log
        File for the service's log; discarded without one.
    """

    def __init__(self, store: str, *, log: Path | None = None) -> None:
        self.store = store
        self.log = log
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return the command that runs the service."""
        program = "from banditrank._cli.main import main; main()"
        return [sys.executable, "-c", program, "serve", "--port", str(self.port)]

    def start(self) -> None:
        """Start the service, and wait until it answers."""
        with (self.log or Path(os.devnull)).open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                env={**os.environ, "BANDITRANK_STORE": self.store},  # may contain a password
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the campaign, which stops the service
            )
        until = time.monotonic() + _START_SECONDS
        with httpx.Client(timeout=_RESPONSE_SECONDS, verify=False) as http:  # noqa: S501 - no TLS
            while time.monotonic() < until:
                self.check_running()
                try:
                    if http.get(f"{self.address}/healthz").status_code == 200:
                        return
                except httpx.TransportError:
                    time.sleep(0.02)
        raise AssertionError("the service did not answer in time")

    def check_running(self) -> None:
        """Raise an error with the end of the log if the process has ended."""
        assert self.process is not None
        code = self.process.poll()
        if code is not None:
            log = self.log.read_text(errors="replace")[-_LOG_TAIL:] if self.log else ""
            raise AssertionError(f"the service ended with code {code}\n{log}")

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Send SIGTERM if the service runs; send SIGKILL and raise an error if it does not stop in time."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"the service did not stop within {_STOP_SECONDS:.0f} seconds") from None
            finally:
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def rss(self) -> int:
        """Return the resident memory, in bytes."""
        return self._status("VmRSS") * 1024

    def threads(self) -> int:
        """Return the number of threads."""
        return self._status("Threads")

    def file_descriptors(self) -> int:
        """Return the number of open file descriptors."""
        return len(list((self._proc / "fd").iterdir()))

    def _status(self, field: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

    @property
    def _proc(self) -> Path:
        assert self.process is not None
        return Path(f"/proc/{self.process.pid}")
