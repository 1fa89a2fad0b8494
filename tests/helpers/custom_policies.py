"""Custom policies and problems in a module of the current directory, as a user writes them."""

from pathlib import Path

MODULE = """
import numpy as np

from banditrank import Policy, Problem, UniformRandom
from banditrank.experiments import Suite


class MostClicked(Policy):
    name = "most-clicked"

    def rank(self, counts, user_type, *, rng, scratch=None):
        clicks = counts.rewards[user_type].sum(axis=1) + rng.uniform(0, 0.1, counts.n_items)
        rates = clicks / (counts.displays[user_type].sum(axis=1) + 1)
        return np.argsort(-rates)[: counts.n_positions]


class Shuffled(UniformRandom):
    name = "shuffled"


class Needy(MostClicked):
    name = "needy"

    def __init__(self, epsilon):
        self.epsilon = epsilon


class Grab(MostClicked):
    name = "grab"


class Twin(MostClicked):
    pass


class Unnamed(UniformRandom):
    name = "a policy/with a bad name"


class Failing(MostClicked):
    name = "failing"

    def __init__(self):
        raise RuntimeError("no luck")


class Dividing(MostClicked):
    name = "dividing"

    def rank(self, counts, user_type, *, rng, scratch=None):
        return [0, 1 // int(counts.rounds < 9)]  # line 51


def tuned():
    return MostClicked()


def number():
    return 3


threshold = 0.5
shop = Problem([1.0], [[0.6, 0.4]], [[0.9, 0.5, 0.1]], name="My shop")
shop_nash = Suite(name="shop-nash", problem=shop, treatment="equal", utility="nash")
copy_of_cascade = Suite(name="cascade", problem=shop)
"""

PROBLEM = """
arrival_rates = [0.6, 0.4]
position_preferences = [[0.7, 0.3], [0.4, 0.6]]
item_means = [[0.9, 0.5, 0.1], [0.2, 0.3, 0.8]]
"""


def write_module(directory: Path, name: str) -> str:
    """Write the module and ``my_problem.toml`` to a directory, and return the module's name."""
    (directory / f"{name}.py").write_text(MODULE)
    (directory / "my_problem.toml").write_text(PROBLEM)
    return name
