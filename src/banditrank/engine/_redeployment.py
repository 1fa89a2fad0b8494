"""A surface in the store, updated to the definition that an application deploys.

Items change on deployment by what the definition gained and lost since it was deployed last, so that a
restart with the same definition does not undo what was added and retired at run time.
"""

from dataclasses import replace
from typing import Literal, TypeAlias

from banditrank.engine._surface import Surface
from banditrank.errors import InvalidInputError

SurfaceUpdate: TypeAlias = Literal["items", "all", "never"]

# Settings of the stored surface that a deployment does not take.
_KEPT = ("retired", "guarantees_since_version", "experiment_periods", "deployed_items")


def differing_settings(stored: Surface, deployed: Surface) -> list[str]:
    """Return the settings in which two definitions of a surface differ, ``items`` for its active items.

    A deployed surface without an experiment does not differ from one with an experiment.

    Examples
    --------
    >>> stored = Surface("home", items=["a", "b", "c"], n_positions=1, retired=["b"])
    >>> differing_settings(stored, Surface("home", items=["c", "a"], n_positions=1))
    []
    >>> differing_settings(stored, Surface("home", items=["a", "b"], n_positions=2))
    ['items', 'n_positions']
    """
    before, after = stored.to_dict(), deployed.to_dict()
    before["items"], after["items"] = set(stored.active_items), set(deployed.active_items)
    ignored = _KEPT if deployed.experiment is not None else (*_KEPT, "experiment")
    return [setting for setting in after if setting not in ignored and after[setting] != before[setting]]


def redeploy(stored: Surface, deployed: Surface, update: Literal["items", "all"]) -> Surface:
    """Return the stored surface with the changed items of the deployed one, and its settings for "all".

    Items that the definition gained since it was deployed last become active, and those that it lost are
    retired. A surface that no definition was deployed to, as it was created over HTTP, gains items only.

    Raises
    ------
    InvalidInputError
        If a setting differs that is not updated, or cannot change, or if too few items would be left.

    Examples
    --------
    >>> first, second = (Surface("home", items=items, n_positions=1) for items in (["a", "b"], ["c", "b"]))
    >>> stored = redeploy(first, first, "items").with_items(["d"])
    >>> redeploy(stored, first, "items").active_items, redeploy(stored, second, "items").active_items
    (('a', 'b', 'd'), ('b', 'd', 'c'))
    >>> redeploy(stored, Surface("home", items=["a", "b"], n_positions=1, policy="ucb-rank"), "items")
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: home's policy must be 'auto' as in the store, unless update is 'all',
        got 'ucb-rank'
    """
    before, after = stored.to_dict(), deployed.to_dict()
    for setting in differing_settings(stored, deployed):
        n_types = len(stored.user_types)
        is_fixed = setting == "n_positions" or (
            setting == "user_types" and after[setting][:n_types] != before[setting]
        )
        if setting != "items" and (is_fixed or update == "items"):
            rule = f"must be {before[setting]!r} as in the store"
            if not is_fixed:
                rule += ", unless update is 'all'"
            raise InvalidInputError(f"{stored.name}'s {setting}", rule, after[setting])
    catalogue, known = deployed.active_items, set(stored.items)
    last = set(stored.deployed_items) or known & set(catalogue)
    gained, lost = set(catalogue) - last, last - set(catalogue)
    dropped = [item for item in stored.active_items if item in lost]
    items = (*stored.items, *(item for item in catalogue if item not in known))
    retired = tuple(item for item in (*stored.retired, *dropped) if item not in gained)
    if len(items) - len(retired) < stored.n_positions:
        kept = [item for item in catalogue if item in retired]
        rule = f"must leave at least {stored.n_positions} items besides those that were retired at run time"
        raise InvalidInputError(f"{stored.name}'s items", rule, kept)
    return replace(
        deployed,
        items=items,
        retired=retired,
        guarantees_since_version=stored.guarantees_since_version,
        experiment=stored.experiment if deployed.experiment is None else deployed.experiment,
        experiment_periods=stored.experiment_periods,
        deployed_items=stored.deployed_items if set(stored.deployed_items) == set(catalogue) else catalogue,
    )
