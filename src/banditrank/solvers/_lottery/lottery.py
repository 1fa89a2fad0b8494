"""Lotteries: rankings with probabilities, and a bound on the distance from the best lottery."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditrank._frames import Columns, Tabular
from banditrank._html import MAX_ROWS, omitted_text, panel, rate_cells, table
from banditrank._text import plural
from banditrank.model._rankings import Ranking

Floats = NDArray[np.float64]

SLACK = 1e-9  # by how much a guarantee may be missed by rounding, relative to its level


@dataclass(frozen=True, slots=True)
class GuaranteeReport:
    """A guarantee, and its price.

    Attributes
    ----------
    name
        The guarantee in words: ``exposure of ad-3``, ``value of male``.
    level
        The least exposure, or the least value.
    reached
        The exposure or value under the lottery.
    price
        The dual: by how much the value rises for each unit by which the level falls; 0 if the guarantee is
        not binding. None if it is unknown: at the limit of what can be kept, where no level can be larger,
        the dual is not unique.

    Examples
    --------
    >>> GuaranteeReport("exposure of ad-3", level=0.1, reached=0.1, price=0.25).is_binding
    True
    """

    name: str
    level: float
    reached: float
    price: float | None

    @property
    def is_binding(self) -> bool:
        """Whether the lottery would be better without the guarantee."""
        return self.price is None or self.price > 0.0

    @property
    def is_kept(self) -> bool:
        """Whether the lottery reaches the level, up to rounding; always if it is certified."""
        return self.reached >= self.level * (1.0 - SLACK)


@dataclass(frozen=True, slots=True, eq=False)
class Lottery(Tabular):
    """A lottery over rankings, the same for all user types or one for each, with a certificate.

    ``to_frame`` returns a row for each ranking and position, with the columns ``ranking`` (from 1),
    ``probability``, ``position`` (from 1) and ``item``; under personalized treatment also ``user_type``.

    Attributes
    ----------
    treatment
        ``equal``: one lottery for all types; ``personalized``: one for each type.
    utility
        Name of the utility that is maximised.
    rankings
        Shape (S, K): the item at each position, the most probable ranking first.
    probabilities
        Shape (S,), sum to 1; under personalized treatment shape (N, S), a row for each type.
    user_type_values
        Shape (N,): each type's expected value.
    exposures
        Shape (M,): the share of users who look at an item, Σ_i λ_i Σ_k ρ_ik X_jk.
    value
        Γ of the expected values plus expected bonuses, recomputed from rankings and probabilities.
    upper_bound
        An upper bound on the value of any lottery that keeps the guarantees.
    gap
        Upper bound on the distance from the optimum, relative to `gap_unit` of the value.
    is_certified
        Whether the gap is at most the target gap.
    guarantees
        The guarantees, with what is reached and their prices.
    unguaranteed_value
        Value of the best lottery without guarantees.
    assignments
        Number of assignments solved.
    seconds
        Elapsed time.
    items, user_types
        Names of all items and user types.

    Examples
    --------
    >>> from banditrank.model._generators import make_problem
    >>> from banditrank.solvers._lottery.solve import solve_lottery
    >>> problem = make_problem("conflict", n_user_types=3, n_items=12, n_positions=1, seed=1)
    >>> lottery = solve_lottery(problem, "maximin")
    >>> lottery.rankings.shape, lottery.is_certified
    ((3, 1), True)
    """

    treatment: str
    utility: str
    rankings: NDArray[np.intp]
    probabilities: Floats
    user_type_values: Floats
    exposures: Floats
    value: float
    upper_bound: float
    gap: float
    is_certified: bool
    guarantees: tuple[GuaranteeReport, ...]
    unguaranteed_value: float
    assignments: int
    seconds: float
    items: tuple[str, ...]
    user_types: tuple[str, ...]

    @property
    def matrix(self) -> Floats:
        """Probabilities X of items at positions, shape (M, K); (N, M, K) under personalized treatment."""
        shares = np.atleast_2d(self.probabilities)  # (1 or N, S)
        n_positions = self.rankings.shape[1]
        matrix = np.zeros((len(shares), len(self.items), n_positions))
        for ranking, column in zip(self.rankings, shares.T, strict=True):
            matrix[:, ranking, np.arange(n_positions)] += column[:, None]
        return matrix[0] if self.probabilities.ndim == 1 else matrix

    def draw(self, rng: np.random.Generator, user_type: int = 0) -> Ranking:
        """Draw a ranking, shape (K,).

        Parameters
        ----------
        rng
            Source of randomness.
        user_type
            Index of the user's type, which matters under personalized treatment only.
        """
        own = self.probabilities if self.probabilities.ndim == 1 else self.probabilities[user_type]
        chosen: Ranking = self.rankings[rng.choice(len(own), p=own)]
        return chosen

    def __repr__(self) -> str:
        proof = "certified" if self.is_certified else f"gap {self.gap:.2g}"
        rankings = plural(len(self.rankings), "ranking")
        return f"<Lottery of {rankings}: value {self.value:.6g}, {proof}>"

    def _repr_html_(self) -> str:
        facts = [
            f"value {self.value:.6g}",
            "certified optimal" if self.is_certified else f"not certified: gap {self.gap:.2g}",
            f"{plural(self.assignments, 'assignment')}, {self.seconds:.3f} s",
        ]
        by_type = np.atleast_2d(self.probabilities)
        headings = ["probability"] if len(by_type) == 1 else list(self.user_types)
        rankings = table(
            "rankings",
            ["ranking", *headings],
            [
                [", ".join(self.items[item] for item in ranking), *(f"{share:.4f}" for share in shares)]
                for ranking, shares in zip(self.rankings[:MAX_ROWS], by_type.T[:MAX_ROWS], strict=True)
            ],
            omitted=omitted_text({"ranking": (len(self.rankings), MAX_ROWS)}),
        )
        values = rate_cells(self.user_type_values[:MAX_ROWS, None])
        user_types = table(
            "expected value to each user type",
            ["user type", "value"],
            [[name, *value] for name, value in zip(self.user_types[:MAX_ROWS], values, strict=True)],
            omitted=omitted_text({"user type": (len(self.user_types), MAX_ROWS)}),
        )
        return panel("Lottery", "", facts, rankings, user_types)

    def _columns(self) -> Columns:
        by_type = np.atleast_2d(self.probabilities)
        shown = [(i, s) for i, row in enumerate(by_type) for s in range(len(row)) if row[s] > 0.0]
        n_positions = self.rankings.shape[1]
        columns: Columns = {
            "ranking": np.repeat([s + 1 for _, s in shown], n_positions),
            "probability": np.repeat([by_type[i, s] for i, s in shown], n_positions),
            "position": np.tile(np.arange(1, n_positions + 1), len(shown)),
            "item": [self.items[item] for _, s in shown for item in self.rankings[s]],
        }
        if self.probabilities.ndim == 2:
            columns["user_type"] = [self.user_types[i] for i, _ in shown for _ in range(n_positions)]
        return columns
