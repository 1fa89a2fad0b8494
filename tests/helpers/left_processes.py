"""Fails a session of tests that leaves a process running.

All processes that the tests start inherit an environment variable, also those that are detached.
"""

import os
import time
from pathlib import Path

import pytest

_VARIABLE = "TEST_SESSION_OF_BANDITRANK"
_MAX_SECONDS = 60.0  # for processes that are ending, on a busy machine


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[_VARIABLE] = str(os.getpid())


@pytest.hookimpl(trylast=True)  # after the workers have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") or not Path("/proc/self/environ").exists():
        return
    deadline = time.monotonic() + _MAX_SECONDS
    while (left := _processes_of_session()) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        for command in left:
            reporter.write_line(f"left running: {command}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _processes_of_session() -> list[str]:
    """Return the commands of processes that the tests of this session started.

    Not of resource trackers, which end with the process that started them: this one, if there are no workers.
    """
    mark = f"{_VARIABLE}={os.environ[_VARIABLE]}".encode()
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        if directory.name == str(os.getpid()):
            continue
        try:
            if mark in (directory / "environ").read_bytes().split(b"\0"):
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                if b"resource_tracker import main" in command:
                    continue
                found.append(f"{directory.name} {command.decode(errors='replace').strip()}")
        except OSError:  # it has ended, or belongs to another user
            continue
    return found
