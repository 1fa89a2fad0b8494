"""Guarantees of a surface: least exposures of items and least values of user types, by name."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from banditrank.errors import InvalidInputError, UnknownFieldError, UnknownNameError
from banditrank.policies._policy_guarantees import guarantee_rows
from banditrank.solvers._lottery.guarantees import Guarantee, KeptShare, LeastExposure

if TYPE_CHECKING:
    from banditrank.engine._surface import Surface

MAX_GUARANTEES = 1_000

_KINDS: dict[str, type[LeastExposure | KeptShare]] = {
    "least-exposure": LeastExposure,
    "kept-share": KeptShare,
}
_SETTINGS = {LeastExposure: ("level", "items", "is_group"), KeptShare: ("share", "user_types")}


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as JSON-compatible values.

    Examples
    --------
    >>> guarantee_to_dict(KeptShare(0.9, user_types=["new"]))
    {'kind': 'kept-share', 'share': 0.9, 'user_types': ['new']}
    """
    kind = next(name for name, one in _KINDS.items() if isinstance(guarantee, one))
    values = {setting: getattr(guarantee, setting) for setting in _SETTINGS[type(guarantee)]}
    return {"kind": kind} | {
        setting: list(value) if isinstance(value, tuple) else value for setting, value in values.items()
    }


def guarantee_from_dict(values: Any, number: int) -> Guarantee:
    """Return the guarantee with settings as from `guarantee_to_dict`.

    Parameters
    ----------
    values
        The settings.
    number
        Number of the guarantee in its surface, from 0, which errors name.

    Raises
    ------
    InvalidInputError
        If a setting is unknown, missing, or breaks its rule.

    Examples
    --------
    >>> guarantee_from_dict({"kind": "least-exposure", "level": 0.02}, 0)
    LeastExposure(level=0.02, items=None, is_group=False)
    >>> guarantee_from_dict({"kind": "kept-share", "share": 1.1}, 0)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: guarantees[0].share must be a number from 0 to 1, got 1.1
    """
    field = f"guarantees[{number}]"
    if not isinstance(values, dict):
        raise InvalidInputError(field, "must be an object", values)
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownNameError(f"{field}.kind", str(kind), tuple(_KINDS))
    known = _SETTINGS[_KINDS[kind]]
    settings = {key: value for key, value in values.items() if key != "kind"}
    for key in settings:
        if key not in known:
            raise UnknownFieldError(f"{field}.{key}", ("kind", *known))
    if known[0] not in settings:
        raise InvalidInputError(f"{field}.{known[0]}", "must be given", sorted(settings))
    for names in known[1:2]:  # items or user types
        given = settings.get(names)
        is_list = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
        if given is not None and not is_list:
            raise InvalidInputError(f"{field}.{names}", "must be a list of names", given)
    if not isinstance(settings.get("is_group", False), bool):
        raise InvalidInputError(f"{field}.is_group", "must be true or false", settings["is_group"])
    try:
        return _KINDS[kind](**settings)
    except InvalidInputError as error:
        name = error.field if error.field in known else known[0]
        raise InvalidInputError(f"{field}.{name}", error.rule, error.value) from None


def check_guarantees(surface: "Surface") -> tuple[Guarantee, ...]:
    """Return the guarantees of a surface.

    Raises
    ------
    InvalidInputError
        If the treatment has no guarantees, an item or a user type is unknown, least exposures sum to more
        than there is, or there are too many.
    """
    given = surface.guarantees
    if not isinstance(given, list | tuple) or not all(isinstance(one, Guarantee) for one in given):
        raise InvalidInputError("guarantees", "must be a list of LeastExposure and KeptShare", given)
    if len(given) > MAX_GUARANTEES:
        raise InvalidInputError("guarantees", f"must be at most {MAX_GUARANTEES:,}", len(given))
    if given and surface.treatment == "equal":
        rule = "must be personalized or equal-lottery if there are guarantees"
        raise InvalidInputError("treatment", rule, surface.treatment)
    for number, guarantee in enumerate(given):
        if isinstance(guarantee, LeastExposure):
            _check_names(f"guarantees[{number}].items", guarantee.items, surface.items)
        else:
            _check_names(f"guarantees[{number}].user_types", guarantee.user_types, surface.user_types)
    guarantee_rows(  # raises if they are too many, or too large together
        active_guarantees(surface),
        n_user_types=len(surface.user_types),
        n_items=len(surface.active_items),
        n_positions=surface.n_positions,
    )
    return tuple(given)


def active_guarantees(surface: "Surface") -> tuple[Guarantee, ...]:
    """Return the guarantees with indices of active items and user types, as policies and solvers take them.

    A retired item has no exposure: until it is active again, it is left out of its guarantees.
    """
    columns = {name: column for column, name in enumerate(surface.active_items)}
    types = {name: number for number, name in enumerate(surface.user_types)}
    found: list[Guarantee] = []
    for guarantee in surface.guarantees:
        if isinstance(guarantee, KeptShare):
            kept = guarantee.user_types
            found.append(
                KeptShare(guarantee.share, None if kept is None else [types[str(one)] for one in kept])
            )
        elif guarantee.items is None:
            found.append(guarantee)
        elif active := [columns[str(item)] for item in guarantee.items if item in columns]:
            found.append(LeastExposure(guarantee.level, active, guarantee.is_group))
    return tuple(found)


def covered_items(surface: "Surface") -> tuple[tuple[Guarantee, tuple[str, ...]], ...]:
    """Return the guarantees in force, each with the names of the active items that it covers."""
    names = surface.active_items
    found: list[tuple[Guarantee, tuple[str, ...]]] = []
    for guarantee in surface.guarantees:
        if isinstance(guarantee, KeptShare):
            found.append((guarantee, ()))
        elif guarantee.items is None:
            found.append((guarantee, names))
        else:
            covered = set(guarantee.items)
            found.append((guarantee, tuple(name for name in names if name in covered)))
    return tuple(found)


def _check_names(field: str, names: Sequence[str | int] | None, known: Iterable[str]) -> None:
    if names is not None:
        unknown = set(names).difference(known)
        for name in names:
            if name in unknown:
                raise UnknownNameError(field, str(name), tuple(known))
