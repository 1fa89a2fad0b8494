"""A world that changes: one problem after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banditrank.checks import check_integer
from banditrank.errors import InvalidInputError
from banditrank.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Problems, each of which is the world from a round on.

    User types and positions stay. Items are known by their names: one that is missing from a problem cannot
    be shown while it lasts, one that comes back is the same item.

    Parameters
    ----------
    problems
        The worlds, in order.
    starts
        The round from which each is the world; the first is 1.
    name
        What to call it; the first problem's name when left out.

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
        """The names of all items that are ever there, by first appearance."""
        return tuple(dict.fromkeys(item for problem in self.problems for item in problem.items))

    @property
    def n_user_types(self) -> int:
        """N."""
        return self.problems[0].n_user_types

    @property
    def n_items(self) -> int:
        """How many items are ever there."""
        return len(self.items)

    @property
    def n_positions(self) -> int:
        """K."""
        return self.problems[0].n_positions

    def at(self, t: int) -> Problem:
        """Return the world of a round."""
        return [p for p, start in zip(self.problems, self.starts, strict=True) if start <= t][-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain values."""
        return {
            "name": self.name,
            "starts": list(self.starts),
            "problems": [problem.to_dict() for problem in self.problems],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Timeline":
        """Make a timeline from plain values."""
        problems = [Problem.from_dict(problem) for problem in values["problems"]]
        return cls(problems, values["starts"], name=values["name"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.starts, self.problems))


def as_timeline(problem: "Problem | Timeline") -> Timeline:
    """Return a problem as a world that never changes; raise an error if it is neither."""
    if isinstance(problem, Timeline):
        return problem
    if not isinstance(problem, Problem):
        rule = "must be a Problem (find_problem makes one from a name) or a Timeline"
        raise InvalidInputError("problem", rule, problem)
    return Timeline([problem], [1])
