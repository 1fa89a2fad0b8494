"""The supervisor replaces workers in each state, and leaves nothing running."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from campaigns.worker_kills import kill_workers
from helpers.supervised_workers import MAX_WAIT_SECONDS, SupervisedService, is_running, wait_for

Start = Callable[..., SupervisedService]
Bring = Callable[[SupervisedService], object]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    services = []

    def start_service(**options: float) -> SupervisedService:
        services.append(SupervisedService(tmp_path, **options))
        return services[-1]

    yield start_service
    for service in services:
        service.process.kill()
        for pid in filter(is_running, service.pids("worker started")):
            os.kill(pid, signal.SIGKILL)
        service.end()


# Replacement


def test_a_serving_worker_that_is_killed_is_replaced(start: Start) -> None:
    service = start()
    killed, other = service.wait_until_ready()
    os.kill(killed, signal.SIGKILL)
    assert other in service.wait_until_ready(without={killed})
    (record,) = service.log("worker died")
    assert (record["pid"], record["exit_code"], record["state"]) == (killed, -signal.SIGKILL, "ready")


def test_connections_wait_while_all_workers_are_replaced(start: Start) -> None:
    service = start()
    killed = service.wait_until_ready()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert service.ask() not in killed


def test_a_starting_worker_that_is_killed_twice_is_replaced(start: Start) -> None:
    service = start()
    first = service.hold_replacement()
    (other,) = service.ready()
    third = service.kill_starting(service.kill_starting(first))
    assert service.ask() == other
    service.unset("hold")
    assert service.wait_until_ready() == {other, third}


def test_workers_that_are_killed_before_any_is_ready_are_replaced(start: Start) -> None:
    service = start(import_seconds=0.5)
    for pid in wait_for(lambda: len(service.starting()) == 2 and service.starting()):
        os.kill(pid, signal.SIGKILL)
    assert len(service.wait_until_ready()) == 2


def test_stopped_workers_are_replaced_while_they_start_or_serve(start: Start) -> None:
    service = start(n_workers=3)
    stopped = {service.hold_replacement(), min(service.ready())}
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    (other,) = service.ready() - stopped
    assert service.ask() == other
    service.unset("hold")
    assert other in service.wait_until_ready(without=stopped)
    assert service.pids("worker does not respond") == stopped


def test_a_worker_that_does_not_respond_is_replaced(start: Start) -> None:
    service = start(n_workers=1, MAX_MISSED_HEARTBEATS=4)
    workers = service.wait_until_ready()
    service.set("hang")
    wait_for(lambda: service.pids("worker does not respond") >= workers)
    service.unset("hang")
    assert service.ask() not in workers


def test_a_worker_may_start_without_heartbeats(start: Start) -> None:
    service = start(n_workers=1, import_seconds=2.0, MAX_MISSED_HEARTBEATS=1)
    (started,) = wait_for(lambda: service.pids("worker started"))
    assert started in wait_for(lambda: service.pids("worker ready"))


# The end of the service


def start_workers(service: SupervisedService) -> None:
    wait_for(lambda: len(service.pids("worker started")) == 2)


def kill_starting_twice(service: SupervisedService) -> None:
    service.kill_starting(service.kill_starting(service.hold_replacement()))


def stop_starting(service: SupervisedService) -> None:
    os.kill(service.hold_replacement(), signal.SIGSTOP)


def stop_all(service: SupervisedService) -> None:
    for pid in service.wait_until_ready():
        os.kill(pid, signal.SIGSTOP)


STATES = [
    start_workers,
    SupervisedService.wait_until_ready,
    SupervisedService.hold_replacement,
    kill_starting_twice,
    stop_starting,
    stop_all,
]


@pytest.mark.parametrize("bring", STATES)
def test_sigterm_ends_workers_in_each_state(start: Start, bring: Bring) -> None:
    # No worker is killed.
    service = start(STOP_TIMEOUT_SECONDS=10 * MAX_WAIT_SECONDS)
    bring(service)
    service.process.terminate()
    assert service.end() == 0


@pytest.mark.parametrize("bring", STATES[:3])
def test_ctrl_c_ends_workers_in_each_state(start: Start, bring: Bring) -> None:
    service = start()
    bring(service)
    os.killpg(service.process.pid, signal.SIGINT)
    assert service.end() == 0
    assert "Traceback" not in service.log_file.read_text()


@pytest.mark.parametrize("bring", STATES[:3])
def test_workers_end_after_their_supervisor(start: Start, bring: Bring) -> None:
    service = start()
    bring(service)
    service.process.kill()
    assert service.end() == -signal.SIGKILL


def test_workers_that_ignore_sigterm_are_killed(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ignore_sigterm").touch()
    service = start(STOP_TIMEOUT_SECONDS=0.5)
    workers = service.wait_until_ready()
    service.process.terminate()
    assert service.end() == 0
    assert service.pids("worker does not stop") == workers


@pytest.mark.parametrize(
    ("behaviour", "constants", "error"),
    [
        ("fail", {}, "the store cannot be opened"),
        ("exit", {}, "worker exited with code 4 before it was ready"),
        ("hold", {"START_TIMEOUT_SECONDS": 0.5}, "worker did not start within 0.5 seconds"),
    ],
)
def test_a_first_start_that_fails_ends_the_service(
    start: Start, tmp_path: Path, behaviour: str, constants: dict[str, float], error: str
) -> None:
    (tmp_path / behaviour).touch()
    service = start(**constants)
    service.end()
    assert [record["error"] for record in service.log("error")] == [error]


def test_later_starts_that_fail_are_retried(start: Start) -> None:
    service = start()
    killed, other = service.wait_until_ready()
    service.set("fail")
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: len(service.pids("worker failed to start")) >= 3)
    levels = [record["level"] for record in service.log("worker failed to start")]
    assert levels[:3] == ["error", "debug", "debug"]
    service.unset("fail")
    assert other in service.wait_until_ready()


# Rolling restart


def test_sighup_replaces_workers_without_losing_a_request(start: Start) -> None:
    service = start(DRAIN_TIMEOUT_SECONDS=MAX_WAIT_SECONDS)
    outdated = service.wait_until_ready()
    is_restarted = threading.Event()
    answered: list[int] = []

    def keep_asking() -> None:
        while not is_restarted.is_set():
            answered.append(service.ask())

    client = threading.Thread(target=keep_asking)
    client.start()
    # Both the supervisor and the workers receive it when a terminal closes.
    os.killpg(service.process.pid, signal.SIGHUP)
    try:
        wait_for(lambda: service.log("workers restarted"))
    finally:
        is_restarted.set()
        client.join()
    assert answered[0] in outdated
    assert len(service.wait_until_ready(without=outdated)) == 2
    assert not service.log("worker died")


def test_outdated_workers_that_do_not_drain_are_terminated(start: Start) -> None:
    service = start(DRAIN_TIMEOUT_SECONDS=0.1)
    outdated = service.wait_until_ready()
    service.set("ignore_drain")
    service.process.send_signal(signal.SIGHUP)
    assert len(service.wait_until_ready(without=outdated)) == 2
    assert service.pids("worker does not drain") == outdated


def test_outdated_workers_serve_while_their_replacements_fail(start: Start) -> None:
    service = start()
    outdated = service.wait_until_ready()
    service.set("fail")
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(service.log("worker failed to start")) >= 2)
    assert service.ask() in outdated
    service.unset("fail")
    wait_for(lambda: service.log("workers restarted"))
    assert len(service.wait_until_ready(without=outdated)) == 2


def test_the_campaign_kills_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    outcome = kill_workers("starting", 1, is_light=True, seed=0)
    assert len(outcome.replacements) == len(outcome.stops) == 1
