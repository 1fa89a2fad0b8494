"""Replications on this machine, with joblib."""

import os
from collections.abc import Generator, Sequence

from banditrank.checks import check_workers
from banditrank.policies.base import CompiledPolicy
from banditrank.simulation.backends.base import Backend
from banditrank.simulation.backends.interpreted import interpreted
from banditrank.simulation.backends.threads import in_threads
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication


class LocalBackend(Backend):
    """Threads or processes of this machine.

    Compiled loops release the interpreter's lock, so threads run them side by side. Policies in plain Python
    do not: they run one after the other, and in processes as soon as these promise to be done sooner. The
    results are the same.

    Parameters
    ----------
    workers
        How many replications run at once, up to 1,024; as many as there are processors when left out.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_workers("workers", workers) or available_cpus()

    def run(self, experiment: Experiment, numbers: Sequence[int], advance: Advance) -> Generator[Replication]:
        """Yield the replications with these numbers as they finish."""
        here = in_threads if isinstance(experiment.policy, CompiledPolicy) else interpreted
        return here(experiment, numbers, self.workers, advance)


def available_cpus() -> int:
    """Return how many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
