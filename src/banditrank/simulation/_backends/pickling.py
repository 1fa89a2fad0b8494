"""Pickled experiments, to run replications in other processes and on other machines.

Functions and classes of the user's script are pickled by value, those of modules by name. Machine code is not
pickled: each machine compiles loops and utilities, or loads them from its cache.
"""

from functools import lru_cache

import cloudpickle

from banditrank.errors import InvalidInputError, describe_error
from banditrank.simulation._progress import Advance
from banditrank.simulation._replication import AnyExperiment, Replication
from banditrank.simulation._run import replicate


class PicklingError(InvalidInputError):
    """An experiment cannot be pickled, or cannot be unpickled in another process."""


def pickle_experiment(experiment: AnyExperiment) -> bytes:
    """Return the experiment as bytes.

    Raises
    ------
    PicklingError
        If a component of the experiment cannot be pickled; the message names it.
    """
    try:
        return bytes(cloudpickle.dumps(experiment))
    except Exception as error:  # noqa: BLE001 - objects of users may raise anything
        component, reason = "experiment", error
    for name in ("policy", "problem", "rewards", "click_model"):
        try:
            cloudpickle.dumps(getattr(experiment, name))
        except Exception as error:  # noqa: BLE001 - as above
            component, reason = name, error
            break
    rule = f"must be picklable to run in other processes ({describe_error(reason)})"
    raise PicklingError(component, rule, str(getattr(experiment, component, experiment.policy.name)))


@lru_cache(maxsize=1)
def unpickle_experiment(payload: bytes) -> AnyExperiment:
    """Return the experiment; the last one is cached, because a process runs several replications of it.

    Raises
    ------
    PicklingError
        If a module or class of the experiment is missing in this process.
    """
    try:
        experiment: AnyExperiment = cloudpickle.loads(payload)
    except Exception as error:
        rule = (
            f"must be importable where replications run, or defined in the script ({describe_error(error)})"
        )
        raise PicklingError("experiment", rule, type(error).__name__) from error
    return experiment


def replicate_pickled(payload: bytes, index: int, advance: Advance | None = None) -> Replication:
    """Run one replication of a pickled experiment.

    Raises
    ------
    PicklingError
        If the experiment cannot be unpickled.
    """
    return replicate(unpickle_experiment(payload), index, advance or (lambda _: None))
