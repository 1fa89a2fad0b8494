"""Guarantees of policies: lotteries over rankings that keep them by the estimates of each round."""

from collections.abc import Iterable

import numpy as np

from banditrank.errors import InvalidInputError
from banditrank.policies._base import Treatment
from banditrank.solvers._instance import Instance
from banditrank.solvers._lottery.guarantees import Guarantee, KeptShare, LeastExposure, as_rows
from banditrank.solvers._lottery.pricing import GuaranteeRows


def check_guarantees(guarantees: Iterable[Guarantee], treatment: Treatment) -> tuple[Guarantee, ...]:
    """Return the guarantees of a policy.

    Raises
    ------
    InvalidInputError
        If they are not guarantees, do not name items and user types by index, or the treatment has no
        lottery that can keep them.
    """
    if isinstance(guarantees, LeastExposure | KeptShare):
        guarantees = (guarantees,)
    if not isinstance(guarantees, Iterable):
        raise InvalidInputError("guarantees", "must be of LeastExposure and KeptShare", guarantees)
    given = tuple(guarantees)
    for guarantee in given:
        if not isinstance(guarantee, LeastExposure | KeptShare):
            raise InvalidInputError("guarantees", "must be of LeastExposure and KeptShare", guarantee)
        named = guarantee.items if isinstance(guarantee, LeastExposure) else guarantee.user_types
        for name in named or ():
            if isinstance(name, str):
                rule = "must hold indices of items and user types: a policy knows no names"
                raise InvalidInputError("guarantees", rule, name)
    if given and treatment == "equal":
        rule = (
            "must be left out under equal treatment: one ranking for all cannot keep them (equal-lottery can)"
        )
        raise InvalidInputError("guarantees", rule, given[0])
    return given


def guarantee_rows(
    guarantees: tuple[Guarantee, ...], *, n_user_types: int, n_items: int, n_positions: int
) -> GuaranteeRows | None:
    """Return guarantees as rows of the solver for a size of problem; None if there are none.

    Raises
    ------
    InvalidInputError
        If there is no such item or user type, or least exposures sum to more than 1.
    """
    if not guarantees:
        return None
    n, m, k = n_user_types, n_items, n_positions
    instance = Instance(np.full(n, 1.0 / n), np.full((n, k), 1.0 / k), np.zeros((n, m)), np.zeros(m))
    items = [f"item {j}" for j in range(m)]
    return as_rows(guarantees, instance, items, [f"user type {i}" for i in range(n)]).rows
