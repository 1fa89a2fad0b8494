"""What runs replications: the contract that this machine and a cluster both keep."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Self

from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication


class Backend(ABC):
    """Runs replications of an experiment.

    Whoever implements it guarantees:

    * A replication depends on the experiment and its number only, as `banditrank.simulation.run.replicate`
      makes it: neither on where it ran, nor on which ran beside it, nor on how often it was begun.
    * What was lost, with a process or a machine, is run again. Each number is yielded once.
    * When the iterator is closed, or anything is raised in it, Ctrl-C included, what is running is stopped
      before control returns. Replications that were yielded by then are complete.
    * What it started it stops, and it leaves everything else as it found it.

    It may be opened for several calls, as a context manager. Otherwise each call opens and closes it.
    """

    @abstractmethod
    def run(self, experiment: Experiment, numbers: Sequence[int], advance: Advance) -> Generator[Replication]:
        """Yield the replications with these numbers as they finish.

        Parameters
        ----------
        experiment
            Of what.
        numbers
            Which; none twice.
        advance
            Called with the number of rounds just played, by any thread, until each round was reported once.
        """

    def open(self) -> None:  # noqa: B027 - nothing to do for most
        """Connect to what runs replications, or raise an error in one line."""

    def close(self) -> None:  # noqa: B027 - as above
        """Leave it. Nothing happens if it is not open."""

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
