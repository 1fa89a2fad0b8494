"""A part of a study: the least that is run, kept and taken up again as a whole."""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from banditrank.simulation.backends.base import Backend
from banditrank.simulation.progress import Advance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """One entry of a study's sweep.

    Parameters
    ----------
    name
        Which part of the study; with the study's name it makes an id such as ``kdd2012/ucb-equal``.
    """

    name: str

    @property
    @abstractmethod
    def work(self) -> float:
        """How many seconds it takes, about, on one core: for the estimate of the time left."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return plain values that the data depend on."""

    @abstractmethod
    def run(self, *, workers: int | None, advance: Advance, backend: Backend | None = None) -> "pd.DataFrame":
        """Return the data.

        Parameters
        ----------
        workers
            Threads, one a processor for None; the data do not depend on it.
        backend
            Where replications run, if not in so many threads; nor do the data depend on this.
        advance
            Called with the steps just made, of `steps` in all. It may raise, to stop.
        """

    @property
    def steps(self) -> int:
        """How many steps `run` reports."""
        return 1

    @property
    def measures_time(self) -> bool:
        """Whether the data are times, which are never the same twice."""
        return False

    def digest(self) -> str:
        """Return what tells the settings from others."""
        text = json.dumps({"kind": type(self).__name__, **self.settings()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
