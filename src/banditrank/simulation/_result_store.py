"""Finished replications of a simulation, in memory and optionally in a directory."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from banditrank import __version__
from banditrank._extras import check_extras
from banditrank.errors import InvalidInputError
from banditrank.policies._contextual.violated_assumptions import violated_contextual_assumptions
from banditrank.policies._violated_assumptions import violated_assumptions
from banditrank.simulation._replication import AnyExperiment, ContextualExperiment, Replication
from banditrank.simulation._result import SUMMARY_FILE, SimulationResult

SAVE_INTERVAL_SECONDS = 10.0


class ResultStore:
    """Finished replications of an experiment.

    Parameters
    ----------
    experiment
        What is replicated.
    directory
        Directory to save replications to. Those of the same experiment that it holds are loaded.

    Raises
    ------
    InvalidInputError
        If the directory holds another experiment, or is not writable.
    MissingDependencyError
        If there is a directory and pandas or PyArrow is not installed.
    """

    def __init__(self, experiment: AnyExperiment, directory: str | Path | None) -> None:
        self._experiment = experiment
        self._directory = None if directory is None else Path(directory)
        self._finished: dict[int, Replication] = {}
        self._seconds = 0.0
        self._saved_at = time.perf_counter()
        if self._directory is not None:
            self._open(self._directory)

    @property
    def missing(self) -> list[int]:
        """Indices of the replications that are not finished."""
        return [index for index in range(self._experiment.replications) if index not in self._finished]

    @property
    def is_empty(self) -> bool:
        """Whether no replication is finished."""
        return not self._finished

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time spent in the context to the duration of the simulation."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - start

    def add(self, replication: Replication) -> None:
        """Add a finished replication; save if the last save is `SAVE_INTERVAL_SECONDS` ago."""
        self._finished[replication.index] = replication
        if time.perf_counter() - self._saved_at > SAVE_INTERVAL_SECONDS:
            self.save()

    def save(self) -> None:
        """Save the finished replications, if there is a directory."""
        if self._directory is not None:
            self._result(sorted(self._finished)).save(self._directory)
            self._saved_at = time.perf_counter()

    def result(self) -> SimulationResult:
        """Return the finished replications among the requested ones."""
        requested = self._experiment.replications
        return self._result([index for index in sorted(self._finished) if index < requested])

    def _result(self, indices: list[int]) -> SimulationResult:
        experiment = self._experiment
        finished = [self._finished[index] for index in indices]
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
            replications=np.array([replication.index for replication in finished]),
            regret=np.array([replication.regret for replication in finished]),
            optimal_rate=np.array([replication.optimal_rate for replication in finished]),
            initial_rounds=np.array([replication.initial_rounds for replication in finished]),
            seconds=self._seconds,
            violations=_violations(experiment),
            counts=tuple(replication.counts for replication in finished if replication.counts is not None),
        )

    def _open(self, directory: Path) -> None:
        """Load the replications in the directory, or create it, before any work is done."""
        check_extras("saving results", "frames")
        if (directory / SUMMARY_FILE).exists():
            self._load(SimulationResult.load(directory))
            return
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError.from_os("save directory", "must be writable", directory, error) from None

    def _load(self, saved: SimulationResult) -> None:
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
        for row, index in enumerate(saved.replications.tolist()):
            self._finished[index] = Replication(
                index, saved.regret[row], saved.optimal_rate[row], int(saved.initial_rounds[row])
            )


def _violations(experiment: AnyExperiment) -> tuple[str, ...]:
    rewards, click_model = experiment.rewards, experiment.click_model
    if isinstance(experiment, ContextualExperiment):
        return violated_contextual_assumptions(
            experiment.policy, experiment.problem, rewards=rewards, click_model=click_model
        )
    return violated_assumptions(
        experiment.policy, experiment.problem, rewards=rewards, click_model=click_model
    )
