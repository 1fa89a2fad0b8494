"""Jobs: the units of a study that run, are stored and resume as a whole."""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """One unit of a study's sweep.

    Parameters
    ----------
    name
        Name within the study; the job's id is ``STUDY/NAME``, such as ``kdd2012/ucb-rank-personalized``.
    """

    name: str

    @property
    @abstractmethod
    def estimated_seconds(self) -> float:
        """Approximate running time on one core, for the progress bar."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the plain values that the data depend on."""

    @abstractmethod
    def run(self, *, workers: int | None, advance: Advance, backend: Backend | None = None) -> "pd.DataFrame":
        """Run the job and return its data.

        Parameters
        ----------
        workers
            Number of threads, one per processor if None; the data do not depend on it.
        advance
            Called with the number of steps just finished, of `n_steps` in total. It may raise, to stop.
        backend
            Runs the replications instead of local threads; the data do not depend on it.
        """

    @property
    def n_steps(self) -> int:
        """Number of steps that `run` reports."""
        return 1

    @property
    def is_timing(self) -> bool:
        """Whether the data are running times, which differ between runs."""
        return False

    def digest(self) -> str:
        """Return a hash of the settings."""
        text = json.dumps({"kind": type(self).__name__, **self.settings()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
