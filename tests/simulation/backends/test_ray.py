"""Replications on Ray: the results of this machine, clear errors, and nothing left behind."""

import doctest
import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from banditrank import (
    BanditRankError,
    BetaRewards,
    ClickModel,
    InvalidInputError,
    Policy,
    Problem,
    UCBRank,
    Utility,
    __version__,
    kdd2012,
    simulate,
)
from banditrank._compilation import inlined
from banditrank.model._click_models import DependentClick
from banditrank.model._timeline import Timeline
from banditrank.simulation._backends import ray_cluster, ray_connection
from banditrank.simulation._backends.ray_cluster import RayBackend

LISTENING = "0A"  # the state, in /proc/net/tcp


@pytest.fixture(scope="module")
def ray_here() -> Iterator[RayBackend]:
    """Ray on this machine, for several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        ray_connection._import_ray()  # which changes some of it
        before = surroundings()
        with RayBackend() as backend:
            directory = Path(backend._ray._private.worker._global_node.get_session_dir_path()).parent
            assert directory.is_dir()
            yield backend
        assert surroundings() == before
        assert not directory.exists()
        assert not [name for name in descendants().values() if "ray" in name]


def surroundings() -> tuple[Any, ...]:
    """Return the settings of this process that Ray changes."""
    names = os.environ.keys() - {"PYTEST_CURRENT_TEST"}
    level, handler = logging.getLogger("ray").level, signal.getsignal(signal.SIGTERM)
    return {name: os.environ[name] for name in names}, level, handler


def descendants() -> dict[int, str]:
    """Return the descendants of this process with their names."""
    found, parents = {}, {os.getpid()}
    processes = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:  # it has ended
            continue
        if not fields["State"].startswith("Z"):
            processes[int(status.parent.name)] = int(fields["PPid"]), fields["Name"]
    while parents:
        parents = {number for number, (parent, _) in processes.items() if parent in parents}
        found |= {number: processes[number][1] for number in parents}
    return found


def most_clicked() -> Policy:
    """Return a policy in plain Python that can be sent, as those of scripts can."""

    class MostClicked(Policy):
        def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN202, ARG002
            clicks = counts.rewards[user_type].sum(axis=1) + rng.uniform(0, 0.1, counts.n_items)
            return np.argsort(-clicks)[: counts.n_positions]

    return MostClicked()


def only_the_first() -> ClickModel:
    """Return a click model of one's own that can be sent."""

    @inlined
    def draw(problem, user_type, ranking, rng, rewards) -> None:  # noqa: ANN001
        for position in range(ranking.size):
            rewards[position] = 0.0
        if rng.random() < problem.item_means[user_type, ranking[0]]:
            rewards[0] = 1.0

    @inlined
    def value(problem, user_type, ranking):  # noqa: ANN001, ANN202
        return problem.item_means[user_type, ranking[0]]

    class OnlyTheFirst(ClickModel):
        name = "only-the-first"

    OnlyTheFirst.draw, OnlyTheFirst.value = staticmethod(draw), staticmethod(value)
    return OnlyTheFirst()


def uncompilable(value: float) -> float:
    return float(str(value))


def test_the_results_are_those_of_this_machine(ray_here: RayBackend) -> None:
    problem = kdd2012()
    later = Problem(**{**problem.to_dict(), "item_means": problem.item_means[:, ::-1]})
    odd = Utility.from_function(lambda u: uncompilable(u), shape="linear")  # noqa: PLW0108 - it is to be sent
    for policy, settings in (
        (UCBRank(coefficient=0.25), {"workers": 2, "problem": Timeline([problem, later], [1, 150])}),
        (UCBRank(coefficient=0.25), {"click_model": DependentClick(0.8)}),
        (UCBRank(schedule=lambda t: 1 / t), {"rewards": BetaRewards(2.0)}),
        (UCBRank(coefficient=0.5, treatment="equal", utility="nash"), {"delay": 3}),
        (
            UCBRank(
                coefficient=0.5,
                treatment="equal",
                utility=Utility.from_function(lambda u: u / (u + 0.1), shape="non-concave"),
            ),
            {},
        ),
        (UCBRank(coefficient=0.5, treatment="equal", utility=odd, solver="enumeration"), {}),
        (UCBRank(coefficient=0.25), {"click_model": only_the_first()}),
        (most_clicked(), {}),
    ):
        # One worker by default: each process of Ray compiles functions of one's own again.
        asked = {"problem": problem, "horizon": 300, "replications": 2, "seed": 3, "workers": 1, **settings}
        here = simulate(policy, **asked)  # first: compiles what the processes of Ray then load
        there = simulate(policy, **asked, backend="ray")  # the program is connected already
        assert ray_here._ray.is_initialized()
        assert there.is_complete
        assert np.array_equal(here.regret, there.regret), (policy, settings)
        assert np.array_equal(here.initial_rounds, there.initial_rounds)


def test_a_process_that_is_killed_loses_nothing(ray_here: RayBackend, tmp_path: Path) -> None:

    class Dying(UCBRank):
        def new_scratch(self) -> Any:
            mine = os.getpid() != driver
            if mine and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().new_scratch()

    driver = os.getpid()
    there = simulate(Dying(coefficient=0.25), kdd2012(), 2000, 5, 3, backend=ray_here)
    assert (tmp_path / "died").exists()
    assert np.array_equal(there.regret, simulate(UCBRank(coefficient=0.25), kdd2012(), 2000, 5, 3).regret)


def test_no_more_run_at_once_than_workers(ray_here: RayBackend, tmp_path: Path) -> None:
    class Noting(UCBRank):
        def new_scratch(self) -> Any:
            if os.getpid() != driver:
                (tmp_path / str(time.monotonic_ns())).touch()
            return super().new_scratch()

    driver = os.getpid()
    begun: list[int] = []
    simulate(
        Noting(coefficient=0.25),
        kdd2012(),
        *(500, 4, 3),
        backend="ray",  # the program is connected already, so nothing else is started
        workers=1,
        progress=lambda _: begun.append(len(list(tmp_path.iterdir()))),
    )
    assert begun == [1, 2, 3, 4]
    assert ray_here._ray.is_initialized()


def test_an_interruption_stops_what_is_running(
    ray_here: RayBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "STOP_TIMEOUT_SECONDS", 600.0)  # on a busy machine

    class FirstIsFast(Policy):
        def new_scratch(self) -> bool:
            try:
                (tmp_path / "first").touch(exist_ok=False)
            except FileExistsError:
                return False
            return True

        def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN202, ARG002
            time.sleep(0.0 if scratch else 1.0)
            return np.arange(counts.n_positions)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    experiment_ends = 1000  # rounds: a quarter of an hour for all but the first
    with pytest.raises(KeyboardInterrupt):  # before the first was taken
        simulate(FirstIsFast(), kdd2012(), experiment_ends, 4, 3, backend=ray_here, progress=interrupt)
    store = importlib.import_module("ray.experimental.internal_kv")
    assert store._internal_kv_list("banditrank-stop-") == [], "the sign is there until all have stopped"


def test_errors_on_the_cluster_are_raised_here(ray_here: RayBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = os.getpid()

    class Failing(Policy):
        def rank(self, counts, user_type, *, rng, scratch=None):  # noqa: ANN001, ANN202, ARG002
            raise ArithmeticError("no ranking today")

    class Distant(UCBRank):
        """Of a module that only this process has."""

    Distant.__module__, Distant.__qualname__ = "distant", "Distant"
    module = ModuleType("distant")
    module.Distant = Distant
    monkeypatch.setitem(sys.modules, "distant", module)

    class Doomed(UCBRank):
        def new_scratch(self) -> Any:
            if os.getpid() != driver:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().new_scratch()

    def told(policy: Policy, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message) as raised:
            simulate(policy, kdd2012(), 300, 1, 3, backend=ray_here)
        assert "\n" not in str(raised.value)

    locked = UCBRank(coefficient=0.25)
    object.__setattr__(locked, "lock", Lock())
    told(locked, InvalidInputError, "policy must be picklable to run in other processes .TypeError")
    told(
        Distant(coefficient=0.25),
        InvalidInputError,
        "must be importable where replications run, .*No module named 'distant'",
    )
    told(Failing(), ArithmeticError, "no ranking today")
    with monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "MAX_RETRIES", 1)
        told(
            Doomed(coefficient=0.25),
            BanditRankError,
            r"replication \d was lost on the cluster .WorkerCrashedError",
        )
    with monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "__version__", "99.0")
        told(
            UCBRank(coefficient=0.25),
            InvalidInputError,
            rf"^banditrank on \S+ must be the same as here: 99.0, .* got '{__version__}'",
        )
    with monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "package_digest", lambda: "0000")
        told(
            UCBRank(coefficient=0.25),
            InvalidInputError,
            rf"^banditrank on .*same as here: .*source digest 0000, got '{__version__}, source digest",
        )


@pytest.mark.usefixtures("ray_here")
def test_the_examples_of_the_documentation_run() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "clusters.md"
    test = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.name, str(page), 0)
    assert len(test.examples) > 5
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=failures.append)
    assert not runner.failures, "".join(failures)


def test_a_machine_without_banditrank_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "banditrank", None)
    outcome, _, found = ray_cluster._make_task()(__version__, "0000", b"", 0, "")
    assert (outcome, found) == ("refused", "none")


def test_another_cluster_is_refused_while_connected(ray_here: RayBackend) -> None:
    joined = ray_here._ray.get_runtime_context().gcs_address
    with pytest.raises(InvalidInputError, match=f"address must be left out: Ray is connected to {joined}"):
        simulate(UCBRank(coefficient=0.25), kdd2012(), 500, 3, 3, backend="ray", address="10.0.0.1:6379")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux what listens")
def test_ray_listens_to_this_machine_alone(ray_here: RayBackend) -> None:
    simulate(UCBRank(coefficient=0.25), kdd2012(), 500, 1, 3, backend=ray_here)
    sockets = set()
    for number in descendants():
        for entry in Path(f"/proc/{number}/fd").glob("*"):
            try:
                sockets.add(str(entry.readlink()))
            except OSError:  # closed meanwhile
                continue
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in sockets:
                listening.append(fields[1].split(":")[0])
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert listening
    assert set(listening) <= loopback
