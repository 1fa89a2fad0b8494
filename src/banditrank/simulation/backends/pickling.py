"""An experiment as bytes, to run its replications in other processes and on other machines.

Functions and classes of the user's own script travel with it; those of modules are found by name where they
arrive. Machine code does not travel: pointers to utilities are made anew, and loops are compiled, or loaded
from what is kept on disk, on each machine.
"""

from functools import lru_cache

import cloudpickle

from banditrank.errors import InvalidInputError, describe_error
from banditrank.simulation.progress import Advance
from banditrank.simulation.replication import Experiment, Replication
from banditrank.simulation.run import replicate


class PicklingError(InvalidInputError):
    """An experiment cannot be sent to another process, or not be made sense of there."""


def pickle_experiment(experiment: Experiment) -> bytes:
    """Return the experiment as bytes, or say what of it cannot be sent."""
    try:
        return bytes(cloudpickle.dumps(experiment))
    except Exception as error:  # noqa: BLE001 - anything may be raised by what users bring
        problem, reason = "experiment", error
    for part in ("policy", "problem", "rewards", "click_model"):
        try:
            cloudpickle.dumps(getattr(experiment, part))
        except Exception as error:  # noqa: BLE001 - as above
            problem, reason = part, error
            break
    rule = f"must be made of what pickle can send to other processes ({describe_error(reason)})"
    raise PicklingError(problem, rule, str(getattr(experiment, problem, experiment.policy.name)))


@lru_cache(maxsize=1)
def unpickle_experiment(payload: bytes) -> Experiment:
    """Return the experiment; the last one is kept, for most processes run several of its replications."""
    try:
        experiment: Experiment = cloudpickle.loads(payload)
    except Exception as error:
        rule = f"must be known where replications run, or be written in the script ({describe_error(error)})"
        raise PicklingError("what a simulation is made of", rule, type(error).__name__) from error
    return experiment


def play(payload: bytes, number: int, advance: Advance | None = None) -> Replication:
    """Run one replication of an experiment that was sent."""
    return replicate(unpickle_experiment(payload), number, advance or (lambda _: None))
