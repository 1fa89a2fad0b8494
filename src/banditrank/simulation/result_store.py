"""Keeps the finished replications of a simulation, in memory and in a directory if there is one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from banditrank import __version__
from banditrank.errors import InvalidInputError
from banditrank.policies.violated_assumptions import violations
from banditrank.simulation.replication import Experiment, Replication
from banditrank.simulation.result import SUMMARY_FILE, SimulationResult

SAVE_INTERVAL_SECONDS = 10.0  # seconds between two savings of what is finished


class ResultStore:
    """What is finished and what is missing.

    Parameters
    ----------
    experiment
        What is replicated.
    directory
        Where to keep them. Replications of the same simulation that are there already are taken over.
    """

    def __init__(self, experiment: Experiment, directory: str | Path | None) -> None:
        self._experiment = experiment
        self._directory = None if directory is None else Path(directory)
        self._finished: dict[int, Replication] = {}
        self._seconds = 0.0
        self._saved = time.perf_counter()
        if self._directory is not None:
            self._open(self._directory)

    @property
    def missing(self) -> list[int]:
        """The numbers of the replications still to run."""
        return [number for number in range(self._experiment.replications) if number not in self._finished]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is finished."""
        return not self._finished

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Count the time that is spent within."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - start

    def add(self, replication: Replication) -> None:
        """Add a finished replication; every few seconds all are saved."""
        self._finished[replication.number] = replication
        if time.perf_counter() - self._saved > SAVE_INTERVAL_SECONDS:
            self.save()

    def save(self) -> None:
        """Save what is finished, if there is a directory for it."""
        if self._directory is not None:
            self._result(sorted(self._finished)).save(self._directory)
            self._saved = time.perf_counter()

    def result(self) -> SimulationResult:
        """Return what is finished of what was requested."""
        wanted = self._experiment.replications
        return self._result([number for number in sorted(self._finished) if number < wanted])

    def _result(self, numbers: list[int]) -> SimulationResult:
        experiment = self._experiment
        done = [self._finished[number] for number in numbers]
        return SimulationResult(
            policy=experiment.policy.describe(),
            problem=experiment.problem,
            horizon=experiment.horizon,
            seed=experiment.seed,
            rewards=str(experiment.rewards),
            click_model=str(experiment.click_model),
            delay=experiment.delay,
            version=__version__,
            fingerprint=experiment.policy.fingerprint(),
            requested=experiment.replications,
            checkpoints=experiment.checkpoints,
            replications=np.array([replication.number for replication in done]),
            regret=np.array([replication.regret for replication in done]),
            optimal_rate=np.array([replication.optimal_rate for replication in done]),
            initial_rounds=np.array([replication.initial_rounds for replication in done]),
            seconds=self._seconds,
            violations=violations(
                experiment.policy,
                experiment.problem,
                rewards=experiment.rewards,
                click_model=experiment.click_model,
            ),
            counts=tuple(replication.counts for replication in done if replication.counts is not None),
        )

    def _open(self, directory: Path) -> None:
        """Take over what the directory holds, or make it, before any work is done."""
        if (directory / SUMMARY_FILE).exists():
            self._take_over(SimulationResult.load(directory))
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError.from_os("save directory", "must be writable", directory, error) from None

    def _take_over(self, saved: SimulationResult) -> None:
        now = self.result()
        for field in (
            "policy",
            "fingerprint",
            "problem",
            "horizon",
            "seed",
            "rewards",
            "click_model",
            "delay",
            "version",
        ):
            if getattr(saved, field) != getattr(now, field):
                rule = f"must be new or hold the same simulation, whose {field} differs"
                raise InvalidInputError("save directory", rule, str(self._directory))
        if not np.array_equal(saved.checkpoints, now.checkpoints):
            rule = "must be new or hold the same simulation, whose checkpoints differ"
            raise InvalidInputError("save directory", rule, str(self._directory))
        self._seconds = saved.seconds
        for row, number in enumerate(saved.replications.tolist()):
            self._finished[number] = Replication(
                number, saved.regret[row], saved.optimal_rate[row], int(saved.initial_rounds[row])
            )
