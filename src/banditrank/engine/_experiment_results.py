"""Results of the experiment of a surface, from its counts."""

from dataclasses import dataclass

import numpy as np

from banditrank.engine._counts_replica import CountsReplica
from banditrank.engine._experiment_report import ArmReport, report_experiment
from banditrank.engine._surface import Surface
from banditrank.errors import NoExperimentError


@dataclass(frozen=True, slots=True)
class PeriodReport:
    """A period with constant shares.

    Attributes
    ----------
    shares
        Share of each arm, the surface's policy first.
    visits
        Number of counted visits of each arm.
    """

    shares: list[float]
    visits: list[int]


@dataclass(frozen=True, slots=True)
class ExperimentResults:
    """Results of the experiment of a surface so far.

    Attributes
    ----------
    surface, experiment
        Names of the surface and of the experiment.
    revision, version
        Versions of the surface's definition and of its counts.
    level
        Probability with which all rewards per visit, all lifts in total, and all lifts of user types are
        within their intervals at all times, each of these three families for itself.
    visits
        Number of counted visits of all arms.
    arms
        Results of the arms, the surface's policy first.
    periods
        Shares of the arms and counted visits of each period, in the order in which the shares were first set.
    """

    surface: str
    experiment: str
    revision: int
    version: int
    level: float
    visits: int
    arms: list[ArmReport]
    periods: list[PeriodReport]


def experiment_results(surface: Surface, revision: int, replica: CountsReplica) -> ExperimentResults:
    """Return the results of a surface's experiment.

    Parameters
    ----------
    surface, revision
        Definition of the surface, and its version.
    replica
        Its counts.

    Raises
    ------
    NoExperimentError
        If the surface has no experiment.
    """
    experiment = surface.experiment
    if experiment is None:
        raise NoExperimentError(surface.name)
    periods = [one for one in surface.experiment_periods if one.experiment == experiment.name]
    n_periods, n_arms = len(periods), len(experiment.arm_names)
    arms = [(p, a, code) for p, one in enumerate(periods) for a, code in enumerate(one.codes) if code]
    version, found = replica.arm_sums(surface, [code for _, _, code in arms])
    sums = np.zeros((3, n_periods, n_arms, len(surface.user_types)))  # visits, Σx, Σx²
    shares = np.zeros((n_periods, n_arms))
    for p, one in enumerate(periods):
        shares[p, : len(one.shares)] = one.shares
    for (p, a, _), values in zip(arms, found, strict=True):
        sums[:, p, a] = values
    max_reward = max(one.max_reward for one in periods)
    visits, rewards, squares = sums
    # The square of each graded reward was rounded: the sum must still be possible.
    least = np.divide(rewards**2, visits, out=np.zeros_like(rewards), where=visits > 0)
    squares = np.clip(squares, least, rewards * max_reward)
    report = report_experiment(
        experiment,
        surface.user_types,
        visits,
        rewards,
        squares,
        max_reward=max_reward,
        period_shares=shares,
    )
    return ExperimentResults(
        surface=surface.name,
        experiment=experiment.name,
        revision=revision,
        version=version,
        level=report.level,
        visits=int(visits.sum()),
        arms=report.arms,
        periods=[
            PeriodReport(shares[p].tolist(), visits[p].sum(axis=1).astype(int).tolist())
            for p in range(n_periods)
        ],
    )
