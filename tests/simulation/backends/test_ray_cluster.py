"""Replications on a real Ray cluster of two machines, on this one: nothing is lost when one of them is."""

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditrank import Policy, UCBRank, kdd2012, simulate

PATIENCE = 600.0  # seconds after which something has gone wrong
SMALL: dict[str, Any] = {
    "object_store_memory": 80 * 2**20,
    "node_ip_address": "127.0.0.1",
    "include_dashboard": False,
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and another machine with a processor each, which listen to this machine alone."""
    directory = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets must have short names
    monkeypatch.setenv("RAY_TMPDIR", directory)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    from ray.cluster_utils import Cluster

    machines = Cluster()
    try:
        for _ in range(2):
            machines.add_node(num_cpus=1, wait=False, **SMALL)
        machines.wait_for_nodes()
        yield machines
    finally:
        machines.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.01)


def make_policy(directory: Path, victim: str) -> Policy:
    """Return UCBRank that notes where each replication begins.

    On the machine that is to be lost it goes no further; on the other it waits until one has begun there.
    """

    class Watched(UCBRank):
        def new_scratch(self) -> Any:
            import ray

            if ray.is_initialized() and ray.get_runtime_context().worker.mode == ray.WORKER_MODE:
                here = ray.get_runtime_context().get_node_id()
                (directory / f"{here}-{uuid.uuid4()}").touch()
                if here == victim:
                    wait_for(lambda: False, "this machine was to be lost")
                wait_for(lambda: list(directory.glob(f"{victim}-*")), "nothing began on the other machine")
            return super().new_scratch()

    return Watched(coefficient=0.25)


@pytest.mark.campaign  # half a minute; in make test a process is lost: test_ray.py
def test_a_machine_that_is_lost_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    import ray

    survivor, (victim,) = cluster.head_node, cluster.worker_nodes
    policy = make_policy(tmp_path, victim.node_id)
    finished: list[int] = []

    def kill_after_the_first(rounds: int) -> None:
        finished.append(rounds)
        if len(finished) == 1:
            cluster.remove_node(victim, allow_graceful=False)  # SIGKILL to all its processes

    settings = {"problem": kdd2012(), "horizon": 5000, "replications": 4, "seed": 3, "keep_counts": True}
    there = simulate(
        policy, **settings, backend="ray", address=cluster.address, progress=kill_after_the_first
    )
    begun = [path.name.rsplit("-", 5)[0] for path in tmp_path.iterdir()]
    assert begun.count(victim.node_id) >= 1, "a replication must have been lost"
    assert begun.count(survivor.node_id) == 4
    assert finished == [5000] * 4

    assert there.is_complete
    here = simulate(UCBRank(coefficient=0.25), **settings)
    assert here.replications.tolist() == there.replications.tolist()
    for field in ("regret", "optimal_rate", "initial_rounds"):
        assert np.array_equal(getattr(here, field), getattr(there, field)), field
    assert here.counts == there.counts
    there.counts[0].record(0, [0, 1], rewards=[0, 1])  # they can be added to

    assert not ray.is_initialized()
    assert survivor.any_processes_alive(), "a cluster must be left as it was found"
