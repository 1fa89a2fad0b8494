"""Finished replications of a simulation, in memory and optionally in a directory."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from banditrank import __version__
from banditrank._extras import check_extras
from banditrank.errors import InvalidInputError
from banditrank.policies._contextual.violated_assumptions import violated_contextual_assumptions
from banditrank.policies._violated_assumptions import violated_assumptions
from banditrank.simulation._component_identities import component_identities, own_digests, own_parameters
from banditrank.simulation._replication import AnyExperiment, ContextualExperiment, Replication
from banditrank.simulation._result import PARAMETERS, SUMMARY_FILE, SimulationResult

SAVE_INTERVAL_SECONDS = 10.0
DIGESTS = "digests"  # in a fingerprint: of the components of a simulation, by name


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
        If the directory holds another experiment, or is not writable, or the experiment has a component of
        the user's own that cannot be told apart from others.
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
            fingerprint=self._fingerprint,
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

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        """The policy's fingerprint, its parameters, and digests of the experiment's components.

        Without a directory, components without a digest are allowed: such a result is never resumed.
        """
        experiment = self._experiment
        fingerprint = {**experiment.policy.fingerprint(), PARAMETERS: own_parameters(experiment.policy)}
        try:
            identities = component_identities(
                experiment.policy, experiment.problem, experiment.rewards, experiment.click_model
            )
            digests = {**own_digests(identities), "policy": identities["policy"].digest}
        except InvalidInputError:
            if self._directory is not None:
                raise
            return fingerprint
        return {**fingerprint, DIGESTS: digests}

    def _open(self, directory: Path) -> None:
        """Load the replications in the directory, or create it, before any work is done."""
        check_extras("saving results", "frames")
        _plain(self._fingerprint)  # may raise
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
            before, after = getattr(saved, field), getattr(now, field)
            if field in ("policy", "fingerprint"):
                before, after = _plain(before), _plain(after)
            if field == "fingerprint":
                self._check_fingerprint(before, after)
            elif before != after:
                raise self._differs(field)
        if not np.array_equal(saved.checkpoints, now.checkpoints):
            raise self._differs("checkpoints")
        self._seconds = saved.seconds
        for row, index in enumerate(saved.replications.tolist()):
            self._finished[index] = Replication(
                index, saved.regret[row], saved.optimal_rate[row], int(saved.initial_rounds[row])
            )

    def _check_fingerprint(self, saved: dict[str, Any], now: dict[str, Any]) -> None:
        """Compare fingerprints; those of built-in policies had no digests before they had them."""
        before, after = saved.pop(DIGESTS, None), now.pop(DIGESTS)
        parameters, given = saved.pop(PARAMETERS, {}), now.pop(PARAMETERS)
        if before is None and (set(after) - {"policy"} or given):
            raise self._differs("fingerprint", "it states no source of own code")
        for name in sorted({*(before or after), *after}):
            if before is not None and before.get(name) != after.get(name):
                changed = [each for each in given if parameters.get(each) != given[each]]
                shown = [f"{each} is {given[each]} and was {parameters.get(each)}" for each in changed]
                reason = ", ".join(shown) or f"the parameters or the source of its {name} changed"
                raise self._differs("fingerprint", reason)
        if saved != now:
            raise self._differs("fingerprint")

    def _differs(self, field: str, reason: str = "") -> InvalidInputError:
        rule = f"must be new or hold the same simulation, whose {field} differs"
        return InvalidInputError(
            "save directory", f"{rule} ({reason})" if reason else rule, str(self._directory)
        )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values as they are read from a file.

    Raises
    ------
    InvalidInputError
        If they are not plain.
    """
    try:
        return dict(json.loads(json.dumps(values, allow_nan=False)))
    except (TypeError, ValueError) as error:
        rule = f"must have a description and a fingerprint of plain values to be saved ({error})"
        raise InvalidInputError("policy", rule, values.get("policy")) from None


def _violations(experiment: AnyExperiment) -> tuple[str, ...]:
    rewards, click_model = experiment.rewards, experiment.click_model
    if isinstance(experiment, ContextualExperiment):
        return violated_contextual_assumptions(
            experiment.policy, experiment.problem, rewards=rewards, click_model=click_model
        )
    return violated_assumptions(
        experiment.policy, experiment.problem, rewards=rewards, click_model=click_model
    )
