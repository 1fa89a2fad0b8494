"""Ray on the command line: one-line errors where it is missing, and Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.command_line import check_refusal

from banditrank.errors import BanditRankError
from banditrank.simulation._backends import ray_connection


def test_without_ray_it_is_said_how_to_get_it(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    message = r"^banditrank: ray is required for the ray backend: pip install 'banditrank\[ray\]'\n$"
    check_refusal(capsys, ["simulate", "--backend", "ray", "--save", "runs"], message)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("nonsense", ", got 'nonsense'"),
        ("127.0.0.1:-5", ", got '127.0.0.1:-5'"),
        ("127.0.0.1:1", r"\(connection refused\), got '127.0.0.1:1'"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "reproduce"])
def test_an_address_where_nothing_listens_is_refused(
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    address: str,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    message = f"^banditrank: --address must be that of a Ray cluster: host:port, or auto.*{reason}"
    target = "--save" if command == "simulate" else "--output"
    check_refusal(capsys, [command, "--backend", "ray", "--address", address, target, "runs"], message)


def test_an_address_of_another_server_is_refused(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray_connection, "CONNECT_TIMEOUT_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        message = rf"\(no answer within 2 seconds, or this machine is not part of it\), got '{address}'"
        check_refusal(capsys, ["simulate", "--backend", "ray", "--save", "runs"], message)


def test_ray_that_was_imported_for_the_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray_connection._import_ray()
    monkeypatch.setattr(ray_connection, "_imported_ray", None)  # as if the program had imported it
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", raising=False)
    message = (
        "^Ray was imported without RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0, so it would not keep to 127.0.0.1"
    )
    with pytest.raises(BanditRankError, match=message), ray_connection.connected(None):
        pytest.fail("it must not be started")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray_connection._check_loopback(sys.modules["ray"])


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    """A real program with all that it has started, interrupted as a terminal does once something is saved."""
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored here, perhaps
        "import banditrank.simulation._result_store as store; store.SAVE_INTERVAL_SECONDS = 0.0\n"
        "from banditrank._cli.main import main; main()"
    )
    settings = ["--policy", "ucb-rank", "--horizon", "500000", "--replications", "5000"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, "simulate", "--backend", "ray", *settings, "--save", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    summary = tmp_path / "ucb-rank-personalized-0.25" / "summary.json"
    try:
        for _ in range(6000):  # ten minutes at most
            if summary.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        output, complaint = process.communicate(timeout=600)
    finally:
        remaining = in_session(process.pid)
        for number in remaining:
            os.kill(number, signal.SIGKILL)
    assert process.returncode == 130
    assert "ucb-rank-personalized-0.25" in output
    *before, last = complaint.splitlines()
    assert last.startswith("banditrank: interrupted after")
    assert all(line.startswith("banditrank: compiling the simulation of") for line in before), complaint
    assert 1 <= len(json.loads(summary.read_text())["replications"]) < 5000
    assert not remaining, "nothing may go on"


def in_session(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended
            continue
        if int(number) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found
