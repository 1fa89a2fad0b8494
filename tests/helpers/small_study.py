"""Small study, to test running, storing and reporting."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from banditrank._report_page.elements import ReportFigure, Table
from banditrank.experiments._job import Job
from banditrank.experiments._simulation_job import SimulationJob
from banditrank.experiments._study import Check, Frames, Study, StudyResult
from banditrank.model._catalog import kdd2012
from banditrank.policies._ucb_rank import UCBRank
from banditrank.simulation._backends.base import Backend
from banditrank.simulation._progress import Advance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUCK_FILE = "STUCK_FILE_OF_BANDITRANK"
"""Environment variable with the name of a file that the job ``second`` creates before it hangs."""


@dataclass(frozen=True, kw_only=True)
class NumbersJob(Job):
    """Random numbers."""

    seed: int
    timed: bool = False

    @property
    def estimated_seconds(self) -> float:
        return 1.0

    @property
    def is_timing(self) -> bool:
        return self.timed

    def settings(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def run(
        self,
        *,
        workers: int | None,  # noqa: ARG002
        advance: Advance,
        backend: Backend | None = None,  # noqa: ARG002
    ) -> pd.DataFrame:
        if self.name == "second" and STUCK_FILE in os.environ:
            Path(os.environ[STUCK_FILE]).write_text("")
            time.sleep(600)
        advance(1)
        return pd.DataFrame({"number": np.random.default_rng(self.seed).random(5)})


def sweep(seed: int, *, quick: bool) -> list[Job]:
    return [
        NumbersJob(name="first", seed=seed),
        NumbersJob(name="second", seed=seed + 1),
        NumbersJob(name="clock", seed=seed + 2, timed=True),
        SimulationJob(
            name="simulated",
            policy=UCBRank(coefficient=0.25),
            problems=(kdd2012(),),
            horizon=500 if quick else 2000,
            replications=5,
            seed=seed,
        ),
    ]


def analyse(frames: Frames) -> StudyResult:
    total = frames["first"]["number"].sum() + frames["second"]["number"].sum()

    def draw(figure: "Figure") -> None:
        figure.subplots().plot(frames["first"]["number"])

    table = Table("Sums", ["job", "sum"], [["both", f"{total:.3f}"]])
    check = Check("The sum is positive.", total > 0, f"{total:.3f}")
    return StudyResult("It is. So it is.", [check], [ReportFigure("numbers", "Numbers", draw)], [table])


STUDY = Study("small", "A small study", "It is positive. It is.", sweep, analyse, "everything")
