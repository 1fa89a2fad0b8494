"""Replications share nothing that a policy changes, whatever runs them."""

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from banditrank import InvalidInputError, Policy, UCBRank, Utility, kdd2012, simulate
from banditrank.model._click_models import draw_user_type
from banditrank.policies._copies import copy_policy
from banditrank.simulation._backends.pickling import pickle_experiment, replicate_pickled
from banditrank.simulation._simulate import make_experiment


class Hoarding(Policy):
    """Changes its attributes in each round, and shows items by them."""

    name = "hoarding"

    def __init__(self, **attributes: Any) -> None:
        self.rounds = 0
        self.notes: dict[str, list[int]] = {"seen": []}
        self.rng = np.random.default_rng(5)
        self.inner: Any = None
        for name, value in attributes.items():
            setattr(self, name, value)

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:  # noqa: ARG002
        self.rounds += 1
        self.notes["seen"].append(user_type)
        shift = self.rounds // 7 + len(self.notes["seen"]) // 11 + int(self.rng.integers(3))
        if self.inner is not None:
            shift += int(self.inner.rank(counts, user_type, rng=rng)[0])
        return (np.arange(counts.n_positions) + shift) % counts.n_items


class Model:
    """Holds a lock, as a model or a client does, and a count."""

    def __init__(self) -> None:
        self.lock, self.asked = threading.Lock(), [0]

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator) -> Any:  # noqa: ARG002
        with self.lock:
            self.asked[0] += 1
        return [self.asked[0] // 13]


@pytest.mark.parametrize(
    "make",
    [Hoarding, lambda: Hoarding(inner=Hoarding()), lambda: Hoarding(inner=Model())],
    ids=["attributes", "a policy inside", "an object with a lock"],
)
def test_replications_start_from_the_policy_that_was_given(make: Callable[[], Hoarding]) -> None:
    """Finding 9: a replication does not see what an earlier one, or an earlier call, left in the policy."""
    policy = make()
    together = simulate(policy, kdd2012(), 60, 4, 3, workers=1)
    assert (policy.rounds, policy.notes) == (0, {"seen": []})
    assert np.array_equal(simulate(policy, kdd2012(), 60, 4, 3, workers=2).regret, together.regret)
    experiment = make_experiment(make(), kdd2012(), 60, 4, 3)
    if not isinstance(policy.inner, Model):  # which cannot be sent to processes
        payload = pickle_experiment(experiment)
        later = [replicate_pickled(payload, index).regret for index in (3, 2, 1, 0)]
        assert np.array_equal(later[::-1], together.regret)


def test_learners_share_nothing() -> None:
    """Finding 9: learners that start from one policy do not see what another one changed in it."""
    policy = Hoarding()
    rankings = []
    for _ in range(2):
        learner = policy.start(kdd2012(), rng=1)
        rankings.append([learner.rank(0).tolist() for _ in range(30)])
    assert rankings[0] == rankings[1]
    assert policy.rounds == 0


class Shared(Hoarding):
    history: ClassVar[list[int]] = []

    def rank(self, counts: Any, user_type: int, *, rng: np.random.Generator, scratch: Any = None) -> Any:
        self.history.append(user_type)
        return super().rank(counts, user_type, rng=rng, scratch=scratch)


@pytest.mark.parametrize("make", [Shared, lambda: Hoarding(inner=Shared())], ids=["own", "inside another"])
def test_changes_of_class_attributes_are_refused(
    make: Callable[[], Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 9: an attribute of a class is shared by all replications, so that a change is refused."""
    monkeypatch.setattr(Shared, "history", [])
    rule = "^policy must not change attributes of classes, .*, and changes Shared.history, got 'hoarding'$"
    with pytest.raises(InvalidInputError, match=rule):
        simulate(make(), kdd2012(), 20, 1, 3)


def test_iterators_are_refused() -> None:
    """Finding 9: what can neither be copied nor stays the same is refused."""
    policy = Hoarding(inner=(index for index in range(9)))
    with pytest.raises(InvalidInputError, match=r"^policy must be copyable, .*generator objects cannot"):
        simulate(policy, kdd2012(), 20, 1, 3)


def test_copies_share_functions_and_utilities() -> None:
    """Finding 9: a copy has the compiled functions of the original."""
    utility = Utility.from_function(lambda u: u, shape="linear")
    policy = UCBRank(treatment="equal", utility=utility, schedule=lambda _: 1.0)
    copied = copy_policy(policy)
    assert copied.utility is utility
    assert copied.schedule.function is policy.schedule.function
    lock = threading.Lock()
    assert copy_policy(Hoarding(inner=[lock])).inner[0] is lock
    assert copy_policy(Hoarding(inner=[draw_user_type])).inner[0] is draw_user_type
