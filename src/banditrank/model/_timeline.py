"""Piecewise-stationary problems: a sequence of problems, each from a given round on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banditrank._checks import check_integer
from banditrank.errors import InvalidInputError
from banditrank.model._problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A piecewise-stationary problem: a sequence of problems, each from a given round on. Immutable.

    All problems have the same user types and positions. Items are identified by name: an item that a problem
    lacks cannot be shown while that problem lasts.

    Parameters
    ----------
    problems
        The problems, in order.
    starts
        The first round of each problem; increasing from 1.
    name
        The timeline's name in results; by default that of the first problem.

    Raises
    ------
    InvalidInputError
        If the starts do not match the problems, or the problems differ in user types or positions.

    Examples
    --------
    >>> before = Problem([1.0], [[1.0]], [[0.2, 0.6]])
    >>> after = Problem([1.0], [[1.0]], [[0.7, 0.1, 0.5]], items=["item-1", "item-2", "fresh"])
    >>> timeline = Timeline([before, after], [1, 5001])
    >>> timeline.items, timeline.at(5000) == before
    (('item-1', 'item-2', 'fresh'), True)
    """

    problems: tuple[Problem, ...]
    starts: tuple[int, ...]
    name: str

    def __init__(
        self, problems: Sequence[Problem], starts: Sequence[int], *, name: str | None = None
    ) -> None:
        if not isinstance(problems, Sequence) or not all(isinstance(each, Problem) for each in problems):
            raise InvalidInputError("problems", "must be a list of Problems", problems)
        if not isinstance(starts, Sequence | np.ndarray):
            raise InvalidInputError("starts", "must be a list of rounds", starts)
        if not problems or len(problems) != len(starts):
            rule = f"must hold a round for each of the {len(problems)} problems, at least one"
            raise InvalidInputError("starts", rule, len(starts))
        rounds = tuple(check_integer("starts", start, 1, 10**12) for start in starts)
        if rounds[0] != 1 or any(b <= a for a, b in pairwise(rounds)):
            raise InvalidInputError("starts", "must begin with 1 and increase", list(rounds))
        first = problems[0]
        for start, problem in zip(rounds, problems, strict=True):
            if problem.user_types != first.user_types or problem.n_positions != first.n_positions:
                rule = f"must have the user types and the {first.n_positions} positions of the first"
                sizes = f"{list(problem.user_types)}, {problem.n_positions} positions"
                raise InvalidInputError(f"the problem from round {start}", rule, sizes)
        object.__setattr__(self, "problems", tuple(problems))
        object.__setattr__(self, "starts", rounds)
        object.__setattr__(self, "name", first.name if name is None else name)

    @property
    def user_types(self) -> tuple[str, ...]:
        """The names of the user types."""
        return self.problems[0].user_types

    @property
    def items(self) -> tuple[str, ...]:
        """The names of the items of all problems, by first appearance."""
        return tuple(dict.fromkeys(item for problem in self.problems for item in problem.items))

    @property
    def n_user_types(self) -> int:
        """N."""
        return self.problems[0].n_user_types

    @property
    def n_items(self) -> int:
        """The number of items of all problems."""
        return len(self.items)

    @property
    def n_positions(self) -> int:
        """K."""
        return self.problems[0].n_positions

    def at(self, t: int) -> Problem:
        """Return the problem of a round."""
        return [p for p, start in zip(self.problems, self.starts, strict=True) if start <= t][-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as a dictionary of lists, numbers and strings."""
        return {
            "name": self.name,
            "starts": list(self.starts),
            "problems": [problem.to_dict() for problem in self.problems],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Timeline":
        """Return the timeline of a dictionary that `to_dict` returned.

        Raises
        ------
        InvalidInputError
            If the values do not make a timeline.
        """
        problems = [Problem.from_dict(problem) for problem in values["problems"]]
        return cls(problems, values["starts"], name=values["name"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.starts, self.problems))


def as_timeline(problem: object) -> Timeline:
    """Return a timeline; a problem becomes one that never changes.

    Raises
    ------
    InvalidInputError
        If the value is neither a problem nor a timeline.
    """
    if isinstance(problem, Timeline):
        return problem
    if not isinstance(problem, Problem):
        rule = "must be a Problem (load_problem returns one by name) or a Timeline"
        raise InvalidInputError("problem", rule, problem)
    return Timeline([problem], [1])
