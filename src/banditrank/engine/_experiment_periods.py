"""Periods of experiments: constant shares, and the codes under which the visits of each arm are counted.

Visits are weighted by the shares that their arms had, so each arm gets a new code when a share changes. A
code is never reused for other shares: visits that are counted late are counted in their own period.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from banditrank.engine._experiment import POLICY_ARM, SurfaceExperiment
from banditrank.errors import InvalidInputError
from banditrank.storage._records import MAX_ARM_CODE


@dataclass(frozen=True, slots=True)
class ExperimentPeriod:
    """Arms with constant shares, and their codes.

    Attributes
    ----------
    experiment
        Name of the experiment.
    arms, policies, shares
        Names, policies and shares of all arms, the surface's policy first; its policy is not recorded.
    codes
        Code of each arm; 0 for an arm whose share is 0.
    learned_codes
        Codes of the visits that the surface's policy learns from, its own included.
    max_reward
        Upper bound of the reward of a visit.
    """

    experiment: str
    arms: tuple[str, ...]
    policies: tuple[str, ...]
    shares: tuple[float, ...]
    codes: tuple[int, ...]
    learned_codes: tuple[int, ...]
    max_reward: int

    def matches(self, experiment: SurfaceExperiment, max_reward: int) -> bool:
        """Return whether an experiment has these arms and shares."""
        present = (experiment.name, experiment.arm_names, experiment.shares, max_reward)
        return (self.experiment, self.arms, self.shares, self.max_reward) == present

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        values = asdict(self).items()
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ExperimentPeriod":
        """Return the period with fields as from `to_dict`.

        Raises
        ------
        InvalidInputError
            If a field is missing or unknown.
        """
        known = sorted(one.name for one in fields(cls))
        if not isinstance(values, dict) or sorted(values) != known:
            raise InvalidInputError("experiment_periods", f"must be objects of {', '.join(known)}", values)
        return cls(**{key: _as_tuple(value) for key, value in values.items()})


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def find_period(
    periods: Sequence[ExperimentPeriod], experiment: SurfaceExperiment, max_reward: int
) -> ExperimentPeriod | None:
    """Return the period with the arms and shares of an experiment; None if there is none yet."""
    return next((one for one in periods if one.matches(experiment, max_reward)), None)


def with_period(
    periods: tuple[ExperimentPeriod, ...], experiment: SurfaceExperiment, max_reward: int
) -> tuple[ExperimentPeriod, ...]:
    """Return the periods of a surface, with a new one if the arms or the shares are new.

    Parameters
    ----------
    periods
        The periods so far, of all experiments.
    experiment
        The present experiment.
    max_reward
        Upper bound of the reward of a visit.

    Raises
    ------
    InvalidInputError
        If an arm was removed, or its policy or ``is_learned_from`` was changed, or no code is left.

    Examples
    --------
    >>> from banditrank.engine._experiment import Arm
    >>> periods = with_period((), SurfaceExperiment("autumn", [Arm("hold-out", 0.05)]), 1)
    >>> periods = with_period(periods, SurfaceExperiment("autumn", [Arm("hold-out", 0.1)]), 1)
    >>> [(one.shares, one.codes, one.learned_codes) for one in periods]
    [((0.95, 0.05), (1, 2), (1,)), ((0.9, 0.1), (3, 4), (3,))]
    """
    _check_arms(periods, experiment)
    if find_period(periods, experiment, max_reward) is not None:
        return periods
    last = max((code for one in periods for code in one.codes), default=0)
    codes, learned = [], []
    is_learned_from = (True, *(arm.is_learned_from for arm in experiment.arms))
    for share, is_learned in zip(experiment.shares, is_learned_from, strict=True):
        last += share > 0
        codes.append(last if share > 0 else 0)
        if share > 0 and is_learned:
            learned.append(last)
    if last > MAX_ARM_CODE:
        rule = (
            f"must need at most {MAX_ARM_CODE} codes over the life of a surface, one for each arm when a "
            "share changes: create a surface for further experiments"
        )
        raise InvalidInputError("experiment", rule, last)
    policies = (POLICY_ARM, *(arm.policy for arm in experiment.arms))
    period = ExperimentPeriod(
        experiment.name,
        experiment.arm_names,
        policies,
        experiment.shares,
        tuple(codes),
        tuple(learned),
        max_reward,
    )
    return (*periods, period)


def _check_arms(periods: Sequence[ExperimentPeriod], experiment: SurfaceExperiment) -> None:
    """Check that the arms of an experiment so far are kept."""
    names = experiment.arm_names
    for period in (one for one in periods if one.experiment == experiment.name):
        if names[: len(period.arms)] != period.arms:
            rule = f"must start with {', '.join(period.arms[1:])} (a share of 0 stops an arm)"
            raise InvalidInputError("experiment.arms", rule, list(names[1:]))
        kept = zip(experiment.arms, period.policies[1:], period.codes[1:], strict=False)
        for number, (arm, policy, code) in enumerate(kept):
            if arm.policy != policy:
                rule = f"must stay {policy} for arm {arm.name}: add an arm"
                raise InvalidInputError(f"experiment.arms[{number}].policy", rule, arm.policy)
            was_learned_from = code in period.learned_codes
            if code and arm.is_learned_from != was_learned_from:
                rule = f"must stay {str(was_learned_from).lower()} for arm {arm.name}: add an arm"
                raise InvalidInputError(
                    f"experiment.arms[{number}].is_learned_from", rule, arm.is_learned_from
                )
