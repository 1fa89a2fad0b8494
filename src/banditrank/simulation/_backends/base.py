"""The interface of backends, which run replications on this machine or on a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Self

from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import AnyExperiment, Replication


class Backend(ABC):
    """Runs replications of an experiment.

    An implementation guarantees:

    * A replication depends only on the experiment and its index, as `banditrank.simulation.replicate`
      computes it: not on where it ran, on concurrent replications, or on retries.
    * A replication that is lost with a process or a machine is run again. Each index is yielded once.
    * When the generator is closed, or an exception is raised in it, including `KeyboardInterrupt`, running
      replications are stopped before control returns. Replications yielded by then are complete.
    * It stops what it started, and leaves everything else unchanged.

    A backend may be opened for several calls, as a context manager. Otherwise each call opens and closes it.
    """

    @abstractmethod
    def run(
        self, experiment: AnyExperiment, indices: Sequence[int], advance: Advance
    ) -> Generator[Replication]:
        """Yield the replications with these indices as they finish.

        Parameters
        ----------
        experiment
            What to replicate.
        indices
            Indices of the replications to run, without duplicates.
        advance
            Progress callback, called from any thread with the number of rounds just run. Each round is
            reported once.
        """

    def open(self) -> None:  # noqa: B027 - optional
        """Connect to the resources that run replications; do nothing if already open."""

    def close(self) -> None:  # noqa: B027 - optional
        """Release the resources; do nothing if not open."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
