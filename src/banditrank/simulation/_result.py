"""Simulation results: regret curves, their spread, and the settings that reproduce them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from banditrank._checks import check_integer
from banditrank._extras import requires
from banditrank._files import atomic_write
from banditrank._frames import Columns, Tabular, make_frame
from banditrank.counts._counts import Counts
from banditrank.errors import InvalidInputError, one_line
from banditrank.model._click_models import SINGLE_LOOK
from banditrank.model._contextual_problem import ContextualProblem
from banditrank.model._problem import Problem
from banditrank.model._rewards import BernoulliRewards
from banditrank.model._timeline import Timeline
from banditrank.policies._base import policy_label
from banditrank.simulation._labels import Labelled, describe_policy, distinct_labels
from banditrank.simulation._steep_runs import least_slope, steep_share
from banditrank.simulation._student_t import interval_radius, mean_and_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from banditrank.simulation._plots import RegretPlotOptions

Floats = NDArray[np.float64]

SUMMARY_FILE = "summary.json"
CURVES_FILE = "curves.parquet"
PARAMETERS = "parameters"  # in a fingerprint: of an own policy, by name


@dataclass(frozen=True, slots=True, eq=False)
class SimulationResult(Tabular):
    """Result of `banditrank.simulate`.

    ``to_frame`` returns a row for each replication and checkpoint, with the columns ``policy``, ``problem``,
    ``seed``, ``replication``, ``round``, ``regret`` and ``optimal_rate``.

    Attributes
    ----------
    policy
        The policy's name and parameters.
    problem
        The problem.
    horizon
        Number of rounds in a replication.
    seed
        Seed of all random numbers.
    rewards
        Distribution of rewards, such as ``bernoulli``.
    click_model
        Click model, such as ``single-look``.
    delay
        Number of rounds after which a reward is observed.
    version
        Version of banditrank that made the result.
    fingerprint
        Values that distinguish the policy from others of the same description: parameters of an own policy,
        and digests of values and code.
    requested
        Number of requested replications; fewer are present after an interruption.
    checkpoints
        Rounds, shape (C,).
    replications
        Indices of the finished replications, shape (R,).
    regret
        Regret up to each checkpoint, shape (R, C).
    optimal_rate
        Share of optimal rounds up to each checkpoint, shape (R, C).
    initial_rounds
        Length of the initial phase, shape (R,): the horizon if it did not end, 0 if there is none.
    seconds
        Duration of the replications, without compilation and saving.
    counts
        What the policy had observed at the end of each replication, if requested.
    violations
        Assumptions of the policy that the problem violates, one sentence each.
    """

    policy: dict[str, Any]
    problem: Problem | Timeline | ContextualProblem
    horizon: int
    seed: int
    rewards: str
    click_model: str
    delay: int
    version: str
    fingerprint: dict[str, Any]
    requested: int
    checkpoints: NDArray[np.int64]
    replications: NDArray[np.int64]
    regret: Floats
    optimal_rate: Floats
    initial_rounds: NDArray[np.int64]
    seconds: float
    counts: tuple[Counts, ...] = ()
    violations: tuple[str, ...] = ()
    _key_column = "policy"

    def __repr__(self) -> str:
        count = f"{len(self.replications)} of {self.requested} replications of {self.horizon:,} rounds"
        regret = f"median regret {self.median[-1]:.4g}" if len(self.replications) else "nothing finished"
        return f"<SimulationResult {self.label} on {self.problem.name}: {count}, {regret}>"

    @property
    def is_complete(self) -> bool:
        """Whether all requested replications are finished."""
        return len(self.replications) >= self.requested

    @property
    def label(self) -> str:
        """A short name, such as ``ucb-rank-equal-nash-0.5``."""
        return policy_label(self.policy)

    @property
    def final_regret(self) -> Floats:
        """Regret of each replication at the horizon, shape (R,)."""
        return self.regret[:, -1]

    @property
    def mean(self) -> Floats:
        """Mean regret at the checkpoints, shape (C,); quantiles show replications with linear regret."""
        return np.asarray(self.regret.mean(axis=0))

    @property
    def median(self) -> Floats:
        """Median regret at the checkpoints, shape (C,)."""
        return self.quantile(0.5)

    @property
    def std(self) -> Floats:
        """Standard deviation of the regret at the checkpoints, shape (C,); 0 for one replication."""
        return np.asarray(self.regret.std(axis=0, ddof=min(1, len(self.regret) - 1)))

    def quantile(self, q: float) -> Floats:
        """Return a quantile of the regret at the checkpoints, shape (C,)."""
        return np.asarray(np.quantile(self.regret, q, axis=0))

    def mean_interval(self, level: float = 0.95) -> Floats:
        """Return the ends of a confidence interval of the mean regret, shape (2, C), by Student's t.

        It takes the replications' mean as normal, which needs dozens of replications if few of them have
        most of the regret. One replication has no spread: both ends are its regret.

        Parameters
        ----------
        level
            Confidence level, between 0 and 1.

        Raises
        ------
        InvalidInputError
            If the level is out of range.
        """
        if not 0 < level < 1:
            raise InvalidInputError("level", "must be between 0 and 1", level)
        radius = interval_radius(self.std, len(self.regret), level)
        return np.array([self.mean - radius, self.mean + radius])

    def log_slope(self, start: int | None = None, level: float = 0.95) -> tuple[float, float, float]:
        """Return the slope of mean regret per ln t between two checkpoints, with its confidence interval.

        A policy whose regret grows like the logarithm has a constant slope, which `graves_lai_constant`
        bounds from below in the long run.

        Parameters
        ----------
        start
            Round of the first checkpoint; a tenth of the horizon by default. The nearest checkpoint counts.
        level
            Confidence level of the interval over replications, by Student's t.

        Returns
        -------
        tuple
            Mean of the replications' slopes, and the ends of its interval; both are the mean if there is one
            replication. All are NaN if there is no checkpoint before the last.

        Raises
        ------
        InvalidInputError
            If the start is not before the horizon, or the level is out of range.

        Examples
        --------
        >>> from banditrank import UCBRank, kdd2012, simulate
        >>> result = simulate(UCBRank(coefficient=0.25), kdd2012(), 2000, 3, seed=7, workers=1)
        >>> mean, low, high = result.log_slope()
        >>> bool(low <= mean <= high)
        True
        """
        if not 0 < level < 1:
            raise InvalidInputError("level", "must be between 0 and 1", level)
        first = check_integer("start", max(self.horizon // 10, 1) if start is None else start, 1)
        if start is not None and first >= self.horizon:
            raise InvalidInputError("start", f"must be before the horizon, {self.horizon}", start)
        index = int(np.argmin(np.abs(self.checkpoints - first)))
        rounds = float(self.checkpoints[-1] / self.checkpoints[index])
        if rounds <= 1.0:
            return np.nan, np.nan, np.nan
        return mean_and_interval((self.regret[:, -1] - self.regret[:, index]) / np.log(rounds), level)

    @property
    def steep_share(self) -> float | None:
        """Share of replications whose regret is steep over the last half of the rounds.

        It is steep if it grows per ln t by more than 3 times the problem's `graves_lai_constant`, the least
        slope in the long run, with differences below 0.005 ignored. Linear regret is steep once there are
        enough rounds. Where there are few, a policy that is still in its initial phase is steep as well.

        None where the constant is unknown: under equal treatment and with guarantees, for problems that
        change or are contextual, graded rewards, other click models than ``single-look`` and
        ``position-based``, and more than 20 items or 20 user types. Also if no checkpoint is near half of the
        rounds.
        """
        slope = least_slope(
            self.problem,
            treatment=self.policy["treatment"],
            click_model=self.click_model,
            rewards=self.rewards,
            has_guarantees=self.policy.get("guarantees") is not None,
        )
        return steep_share(self.checkpoints, self.regret, slope)

    @property
    def rounds_per_second(self) -> float:
        """Rounds per second of wall-clock time, over all replications."""
        return len(self.replications) * self.horizon / self.seconds if self.seconds > 0 else 0.0

    def problem_summary(self, changes: str | None = None) -> str:
        """Return the problem's name and the settings that differ from their defaults, as one line.

        Parameters
        ----------
        changes
            Name of the problem's changes; the number of changes by default.
        """
        parts = [self.problem.name]
        if isinstance(self.problem, Timeline) and (count := len(self.problem.problems) - 1):
            parts.append(changes or f"{count} change{'s' if count > 1 else ''}")
        if self.click_model != str(SINGLE_LOOK):
            parts.append(f"{self.click_model} clicks")
        if self.rewards != str(BernoulliRewards()):
            parts.append(f"rewards {self.rewards}")
        if self.delay:
            parts.append(f"delay {self.delay:,}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``banditrank simulate --json`` writes them."""
        return {
            **self.policy,
            "violations": list(self.violations),
            "is_complete": self.is_complete,
            "checkpoints": self.checkpoints.tolist(),
            "regret": {
                "mean": self.mean.tolist(),
                "median": self.median.tolist(),
                "standard_deviation": self.std.tolist(),
                "percentile_10": self.quantile(0.1).tolist(),
                "percentile_90": self.quantile(0.9).tolist(),
            },
            "final_regret": self.final_regret.tolist(),
            "optimal_rate": self.optimal_rate[:, -1].tolist(),
            "initial_rounds": self.initial_rounds.tolist(),
            "steep_share": self.steep_share,
            "seconds": self.seconds,
            "rounds_per_second": self.rounds_per_second,
        }

    def _repr_html_(self) -> str:
        from banditrank.simulation._result_html import result_html  # noqa: PLC0415 - circular

        return result_html(self)

    @classmethod
    def _distinct_keys(cls, results: Sequence[Any]) -> list[str]:
        places = [(result.problem.name, result.seed) for result in results]
        labelled = zip(results, places, strict=True)
        return distinct_labels(
            "results", [labelled_result(result, place, has_seed=False) for result, place in labelled]
        )

    def _columns(self) -> Columns:
        n_rows = self.regret.size
        return {
            "policy": [self.label] * n_rows,
            "problem": [self.problem.name] * n_rows,
            "seed": np.full(n_rows, self.seed),
            **self._curves(),
        }

    def _curves(self) -> Columns:
        """Return the columns of the Parquet file."""
        return {
            "replication": np.repeat(self.replications, len(self.checkpoints)),
            "round": np.tile(self.checkpoints, len(self.replications)),
            "regret": self.regret.flatten(),
            "optimal_rate": self.optimal_rate.flatten(),
        }

    def plot(self, **options: "Unpack[RegretPlotOptions]") -> "Figure":
        """Plot regret over rounds: the median, and each replication as a faint line.

        Parameters
        ----------
        options
            Options of `banditrank.plot_regret`.

        Returns
        -------
        Figure
            A Matplotlib figure, which a notebook shows if it is the value of a cell.

        Raises
        ------
        InvalidInputError
            If an option is not valid.
        MissingDependencyError
            If Matplotlib is not installed.

        Examples
        --------
        >>> from banditrank import kdd2012, simulate
        >>> figure = simulate("ucb-rank", kdd2012(), 500, 3, seed=1).plot(band="quantiles", y_scale="linear")
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('round', 'regret')
        """
        from banditrank.simulation._plots import plot_regret  # noqa: PLC0415 - Matplotlib is heavy

        return plot_regret([self], **options)

    def save(self, directory: str | Path) -> None:
        """Write the result to a directory, as a JSON summary and Parquet curves; `load` reads it.

        Raises
        ------
        InvalidInputError
            If the directory is not writable.
        """
        with requires("frames", "saving results"):
            import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
            from pyarrow import parquet  # noqa: PLC0415 - heavy, and optional

        directory = Path(directory)
        table = pa.Table.from_pandas(make_frame(self._curves(), "pandas"), preserve_index=False)
        metadata = {"banditrank.seed": str(self.seed), "banditrank.version": self.version}
        table = table.replace_schema_metadata({**table.schema.metadata, **metadata})
        text = json.dumps(self._summary(), indent=2, allow_nan=False) + "\n"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # Each file is replaced atomically, so that an interruption leaves the old one or the new one.
            with atomic_write(directory / CURVES_FILE) as path:
                parquet.write_table(table, path)
            with atomic_write(directory / SUMMARY_FILE) as path:
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInputError.from_os("save directory", "must be writable", directory, error) from None

    def _summary(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        for name in ("checkpoints", "regret", "optimal_rate", "counts"):
            del values[name]
        return {
            **values,
            "problem": self.problem.to_dict(),
            "replications": self.replications.tolist(),
            "initial_rounds": self.initial_rounds.tolist(),
            "run": self.to_dict(),
        }

    @classmethod
    def load(cls, directory: str | Path) -> "SimulationResult":
        """Read a result that `save` wrote.

        Raises
        ------
        InvalidInputError
            If the directory does not hold a valid result.
        """
        with requires("frames", "loading results"):
            import pandas as pd  # noqa: PLC0415 - heavy, and optional

        directory = Path(directory)
        try:
            values = json.loads((directory / SUMMARY_FILE).read_text(encoding="utf-8"))
            frame = pd.read_parquet(directory / CURVES_FILE)
            del values["run"]
            replications = np.array(values.pop("replications"), dtype=np.int64)
            frame = frame[frame["replication"].isin(replications)]  # newer curves, after an interruption
            shape = (len(replications), -1)
            described = values["problem"]
            problem: Problem | Timeline | ContextualProblem
            if "problems" in described:
                problem = Timeline.from_dict(described)
            elif "users" in described:
                problem = ContextualProblem.from_dict(described)
            else:
                problem = Problem.from_dict(described)
            if not (np.isfinite(frame["regret"]).all() and frame["optimal_rate"].between(0, 1).all()):
                raise ValueError("regret or optimal_rate out of range")  # noqa: TRY301 - reported below
            return cls(
                **{
                    **values,
                    "problem": problem,
                    "violations": tuple(values["violations"]),
                    "replications": replications,
                    "initial_rounds": np.array(values["initial_rounds"], dtype=np.int64),
                    "checkpoints": frame["round"].to_numpy().reshape(shape)[0],
                    "regret": frame["regret"].to_numpy().reshape(shape),
                    "optimal_rate": frame["optimal_rate"].to_numpy().reshape(shape),
                }
            )
        except Exception as error:  # noqa: BLE001 - a damaged file may raise anything
            reason = one_line(error)
            raise InvalidInputError(
                "saved result", f"must be a directory written by save ({reason})", str(directory)
            ) from None


def labelled_result(
    result: SimulationResult, place: tuple[object, ...] = (), *, has_seed: bool = True
) -> Labelled:
    """Return the label of a result, and what may tell it apart from others: see `distinct_labels`.

    Parameters
    ----------
    result
        The result.
    place
        Labels must differ only from others in the same place.
    has_seed
        Whether the seed may be part of the label.
    """
    settings = {name: getattr(result, name) for name in ("rewards", "click_model", "delay", "horizon")}
    if has_seed:
        settings["seed"] = result.seed
    parameters = describe_policy(result.policy, result.fingerprint.get(PARAMETERS, {}))
    return Labelled(result.label, {**parameters, **settings, "version": result.version}, place)
