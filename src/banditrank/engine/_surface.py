"""Definition of a surface: a place where items are ranked."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from banditrank._checks import check_integer, check_number
from banditrank.engine._experiment import SurfaceExperiment
from banditrank.engine._experiment_periods import ExperimentPeriod, find_period, with_period
from banditrank.engine._guarantees import (
    active_guarantees,
    check_guarantees,
    covered_items,
    guarantee_from_dict,
    guarantee_to_dict,
)
from banditrank.engine._served_policies import LOTTERY_NAMES, served_policy
from banditrank.engine._surface_name import SURFACE_NAME, SURFACE_NAME_RULE
from banditrank.errors import (
    InvalidInputError,
    StoreError,
    UnknownFieldError,
    UnknownNameError,
    UnsolvableError,
    one_line,
)
from banditrank.model._click_models import RankOneClickModel
from banditrank.policies._base import CompiledPolicy, Treatment, draws_lotteries
from banditrank.solvers._lottery.guarantees import Guarantee

Unreported: TypeAlias = Literal["not-clicked", "discarded"]

MAX_USER_TYPES, MAX_ITEMS, MAX_POSITIONS = 1_000, 10_000, 100
MAX_CELLS = 2_000_000
MAX_NAME_LENGTH = 200
RESERVED_NAMES = (".", "..")
"""Names with another meaning in the path of a URL."""

NAME_RULE = f"1 to {MAX_NAME_LENGTH} printable characters"
_DAY = 86_400.0
ATTRIBUTION_SECONDS = (1.0, 90 * _DAY)
REFRESH_SECONDS = (0.0, 3600.0)
KEEP_SECONDS = (60.0, 3650 * _DAY)
"""Lowest and highest values of the settings in seconds."""


def name_list_rule(n_min: int, n_max: int) -> str:
    """Return the rule of a list of names."""
    return f"a list of {n_min} to {n_max:,} names"


class ItemChanges(NamedTuple):
    """Differences between the items of a surface before and after an update.

    Attributes
    ----------
    added
        New items.
    revived
        Items that were retired before, and are active now.
    retired
        Items that were active before, and are retired now.
    unchanged
        Number of items that were and are active.
    """

    added: tuple[str, ...]
    revived: tuple[str, ...]
    retired: tuple[str, ...]
    unchanged: int

    @classmethod
    def between(cls, before: "Surface", after: "Surface") -> "ItemChanges":
        """Return the differences between two definitions of a surface.

        Examples
        --------
        >>> before = Surface("home", items=["a", "b", "c"], n_positions=1, retired=["c"])
        >>> ItemChanges.between(before, before.with_catalogue(["b", "c", "d"]))
        ItemChanges(added=('d',), revived=('c',), retired=('a',), unchanged=1)
        """
        known, active_before, active = set(before.items), set(before.active_items), set(after.active_items)
        return cls(
            added=tuple(name for name in after.items if name not in known),
            revived=tuple(name for name in before.items if name in active and name not in active_before),
            retired=tuple(name for name in before.active_items if name not in active),
            unchanged=len(active & active_before),
        )


@dataclass(frozen=True)
class Surface:
    """A place where items are ranked: items, positions, user types, and the policy.

    Parameters
    ----------
    name
        Lower-case letters, digits, dots, dashes and underscores.
    items
        Names of the items. An item's index is its number, so new items are appended.
    n_positions
        Number of items that are shown at once.
    user_types
        Names of the user types; new ones are appended.
    policy
        ``auto``, or the name of another policy that learns from counts alone.
    treatment, utility
        ``personalized``, a ranking for each user type, or with guarantees a lottery; ``equal``, one ranking
        for all, with the utility that it maximises; or ``equal-lottery``, one lottery over rankings for all,
        with the utility of expected values that it maximises.
    coefficient
        Exploration coefficient, for policies that have one.
    retired
        Items that are no longer shown; their counts are kept.
    attribution_seconds
        Length of the attribution window, within which feedback is accepted.
    unreported
        How an impression without feedback is counted when its window closes: ``not-clicked``, or not at all
        (``discarded``).
    refresh_seconds
        Maximum age of the counts behind a ranking; 0 for always the latest.
    keep_seconds
        How long single rankings are kept, so that they can be explained and repeated feedback recognised.
    click_model
        How users look at a ranking: ``single-look``, at one position, so that they click at most once; or
        ``position-based``, at each position independently, so that they may click several items.
    allow_short_rankings
        Whether a ranking may have fewer items than positions, if a request allows fewer.
    guarantees
        Least exposures of items (`LeastExposure`) and least values of user types (`KeptShare`), by name, that
        the lottery of ``equal-lottery`` keeps, or the lotteries of the user types under ``personalized``.
    guarantees_since_version
        Version of the counts at which the guarantees, as they cover the active items, took effect; set by the
        engine, not by callers.
    experiment
        Arms that share the visits with the policy; None without an experiment.
    experiment_periods
        Codes of the arms of all experiments so far; those of the present one are added.
    deployed_items
        Items of the definition that a `Ranker` deployed last; set by it, not by callers, and not compared.

    Raises
    ------
    InvalidInputError
        If a setting breaks its rule.
    UnsolvableError
        If the policy cannot rank a surface of this size.

    Attributes
    ----------
    compiled_policy
        The policy, compiled for the treatment, the utility and the coefficient.

    Examples
    --------
    >>> surface = Surface("home", items=["a", "b", "c"], n_positions=2, user_types=["new", "old"])
    >>> surface.active_items
    ('a', 'b', 'c')
    >>> surface.with_retired(["b"]).active_items
    ('a', 'c')
    >>> Surface("home", items=["a"], n_positions=0)
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: n_positions must be a whole number from 1 to 100, got 0
    >>> from banditrank import LeastExposure
    >>> Surface("home", items=["a", "b"], n_positions=1, treatment="equal", guarantees=[LeastExposure(0.1)])
    Traceback (most recent call last):
    banditrank.errors.InvalidInputError: treatment must be personalized or equal-lottery if there are
        guarantees, got 'equal'
    """

    name: str
    items: Sequence[str]
    n_positions: int
    user_types: Sequence[str] = ("everybody",)
    policy: str = "auto"
    treatment: Treatment = "personalized"
    utility: str = "utilitarian"
    coefficient: float | None = None
    retired: Sequence[str] = ()
    attribution_seconds: float = 1800.0
    unreported: Unreported = "not-clicked"
    refresh_seconds: float = 0.25
    keep_seconds: float = 30 * _DAY
    click_model: RankOneClickModel = "single-look"
    allow_short_rankings: bool = False
    guarantees: Sequence[Guarantee] = ()
    guarantees_since_version: int = 0
    experiment: SurfaceExperiment | None = None
    experiment_periods: tuple[ExperimentPeriod, ...] = ()
    deployed_items: Sequence[str] = field(default=(), compare=False)
    compiled_policy: CompiledPolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(SURFACE_NAME, self.name):
            raise InvalidInputError("name", f"must be {SURFACE_NAME_RULE}", self.name)
        for names, n_min, n_max in (
            ("user_types", 1, MAX_USER_TYPES),
            ("items", 1, MAX_ITEMS),
            ("retired", 0, MAX_ITEMS),
            ("deployed_items", 0, MAX_ITEMS),
        ):
            object.__setattr__(self, names, _check_names(names, getattr(self, names), n_min, n_max))
        known = set(self.items)
        for name in self.retired:
            if name not in known:
                raise UnknownNameError("retired", name, self.items)
        if not self.active_items:
            raise InvalidInputError("retired", "must leave at least one item", list(self.retired))
        n_positions = check_integer("n_positions", self.n_positions, 1, MAX_POSITIONS)
        n_active = len(self.active_items)
        if n_positions > n_active:
            rule = f"must be a whole number from 1 to {n_active}, the number of active items"
            raise InvalidInputError("n_positions", rule, n_positions)
        object.__setattr__(self, "n_positions", n_positions)
        cells = len(self.user_types) * len(self.items) * self.n_positions
        if cells > MAX_CELLS:
            rule = f"must be at most {MAX_CELLS:,}"
            raise InvalidInputError("user types × items × positions", rule, cells)
        self._check_feedback_settings()
        object.__setattr__(self, "guarantees", check_guarantees(self))
        check_integer("guarantees_since_version", self.guarantees_since_version, 0)
        if draws_lotteries(self.treatment, self.guarantees) and self.policy not in LOTTERY_NAMES:
            reason = "if there are guarantees" if self.guarantees else "under equal-lottery treatment"
            rule = f"must be one of {', '.join(LOTTERY_NAMES)} {reason}"
            raise InvalidInputError("policy", rule, self.policy)
        policy = served_policy(
            self.policy,
            treatment=self.treatment,
            utility=self.utility,
            coefficient=self.coefficient,
            click_model=self.click_model,
            guarantees=active_guarantees(self),
        )
        policy.kernel(n_items=len(self.items), n_positions=self.n_positions)  # raises if it is too large
        object.__setattr__(self, "compiled_policy", policy)
        self._set_experiment()

    def _set_experiment(self) -> None:
        periods = tuple(self.experiment_periods)
        if self.experiment is not None:
            if not isinstance(self.experiment, SurfaceExperiment):
                raise InvalidInputError("experiment", "must be a SurfaceExperiment", self.experiment)
            self.experiment.check_names(self)
            periods = with_period(periods, self.experiment, self.max_reward)
        object.__setattr__(self, "experiment_periods", periods)

    def _check_feedback_settings(self) -> None:
        for setting, allowed in (
            ("unreported", get_args(Unreported)),
            ("click_model", get_args(RankOneClickModel)),
        ):
            if getattr(self, setting) not in allowed:
                raise UnknownNameError(setting, getattr(self, setting), allowed)
        if not isinstance(self.allow_short_rankings, bool):
            rule = "must be true or false"
            raise InvalidInputError("allow_short_rankings", rule, self.allow_short_rankings)
        check_number("attribution_seconds", self.attribution_seconds, *ATTRIBUTION_SECONDS)
        check_number("refresh_seconds", self.refresh_seconds, *REFRESH_SECONDS)
        check_number("keep_seconds", self.keep_seconds, *KEEP_SECONDS)

    @property
    def max_reward(self) -> int:
        """Upper bound of the reward of a visit: the number of clicks that are possible."""
        return 1 if self.click_model == "single-look" else self.n_positions

    @cached_property
    def period(self) -> ExperimentPeriod | None:
        """The present period of the experiment; None without an experiment."""
        if self.experiment is None:
            return None
        return find_period(self.experiment_periods, self.experiment, self.max_reward)

    @cached_property
    def learned_codes(self) -> frozenset[int]:
        """Codes of the visits that the policy learns from: 0, its own, and those of some arms."""
        return frozenset((0, *(code for one in self.experiment_periods for code in one.learned_codes)))

    def codes_of_arm(self, arm: str) -> frozenset[int]:
        """Return the codes of an arm of the present experiment, in all its periods."""
        name = None if self.experiment is None else self.experiment.name
        periods = [one for one in self.experiment_periods if one.experiment == name and arm in one.arms]
        return frozenset(code for one in periods if (code := one.codes[one.arms.index(arm)]))

    def arm_of_code(self, code: int) -> str | None:
        """Return the name of the arm with a code, in any experiment so far; None without an experiment."""
        pairs = (pair for one in self.experiment_periods for pair in zip(one.codes, one.arms, strict=True))
        return next((arm for known, arm in pairs if code and known == code), None)

    @cached_property
    def active_items(self) -> tuple[str, ...]:
        """The items that are not retired."""
        return tuple(self.items[number] for number in self.active_numbers)

    @cached_property
    def active_numbers(self) -> tuple[int, ...]:
        """The numbers of the items that are not retired."""
        retired = set(self.retired)
        return tuple(number for number, item in enumerate(self.items) if item not in retired)

    @cached_property
    def active_item_numbers(self) -> dict[str, int]:
        """The numbers of the items that are not retired, by name."""
        return {self.items[number]: number for number in self.active_numbers}

    def with_items(self, names: Iterable[str]) -> "Surface":
        """Return the surface with items added, or retired ones brought back; active ones stay.

        Raises
        ------
        InvalidInputError
            If a name is invalid, or there would be too many items.
        """
        return self._with_active(_check_names("items", names, 1, MAX_ITEMS), self.retired)

    def with_retired(self, names: Iterable[str]) -> "Surface":
        """Return the surface with items retired; their counts are kept.

        Raises
        ------
        UnknownNameError
            If an item is not active.
        InvalidInputError
            If too few items would be left.
        """
        retired = _check_names("items", names, 1, MAX_ITEMS)
        active = set(self.active_items)
        for name in retired:
            if name not in active:
                raise UnknownNameError("items", name, self.active_items)
        left = len(active) - len(retired)
        if left < self.n_positions:
            rule = f"must leave at least {self.n_positions} items, one for each position"
            raise InvalidInputError("items", rule, left)
        return replace(self, retired=(*self.retired, *retired))

    def with_catalogue(self, names: Iterable[str]) -> "Surface":
        """Return the surface whose active items are exactly those of a catalogue.

        New items are added in the order of the catalogue, retired ones are brought back, and the others are
        retired. The same catalogue again changes nothing.

        Raises
        ------
        InvalidInputError
            If a name is invalid, there are fewer items than positions, or there would be too many items.

        Examples
        --------
        >>> surface = Surface("home", items=["a", "b", "c"], n_positions=2)
        >>> surface.with_catalogue(["d", "b"]).active_items
        ('b', 'd')
        >>> surface.with_catalogue(["d"])
        Traceback (most recent call last):
        banditrank.errors.InvalidInputError: items must be at least 2, one for each position, got 1
        """
        catalogue = _check_names("items", names, 1, MAX_ITEMS)
        if len(catalogue) < self.n_positions:
            rule = f"must be at least {self.n_positions}, one for each position"
            raise InvalidInputError("items", rule, len(catalogue))
        kept = set(catalogue)
        dropped = tuple(name for name in self.active_items if name not in kept)
        return self._with_active(catalogue, (*self.retired, *dropped))

    def _with_active(self, names: Sequence[str], retired: Sequence[str]) -> "Surface":
        """Return the surface with active items, and other items retired."""
        known, active = set(self.items), set(names)
        items = (*self.items, *(name for name in names if name not in known))
        if len(items) > MAX_ITEMS:
            rule = f"must be at most {MAX_ITEMS:,}, retired ones included"
            raise InvalidInputError("items", rule, len(items))
        return replace(self, items=items, retired=tuple(name for name in retired if name not in active))

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as JSON-compatible values."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.init}
        values["guarantees"] = [guarantee_to_dict(one) for one in self.guarantees]
        values["experiment"] = None if self.experiment is None else self.experiment.to_dict()
        values["experiment_periods"] = [one.to_dict() for one in self.experiment_periods]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Surface":
        """Return the surface with settings as from `to_dict`.

        Raises
        ------
        InvalidInputError
            If a setting is unknown, missing, or breaks its rule.
        """
        known = [one.name for one in fields(cls) if one.init]
        for key in values:
            if key not in known:
                raise UnknownFieldError(one_line(key)[:MAX_NAME_LENGTH], known)
        for key in ("name", "items", "n_positions"):
            if key not in values:
                raise InvalidInputError(key, "must be given", sorted(values))
        values = dict(values)
        guarantees = values.get("guarantees", ())
        if not isinstance(guarantees, list | tuple):
            raise InvalidInputError("guarantees", "must be a list of guarantees", guarantees)
        values["guarantees"] = tuple(guarantee_from_dict(one, i) for i, one in enumerate(guarantees))
        if values.get("experiment") is not None:
            values["experiment"] = SurfaceExperiment.from_dict(values["experiment"])
        periods = values.get("experiment_periods", ())
        if not isinstance(periods, list | tuple):
            raise InvalidInputError("experiment_periods", "must be a list of periods", periods)
        values["experiment_periods"] = tuple(ExperimentPeriod.from_dict(one) for one in periods)
        return cls(**values)

    @property
    def definition(self) -> str:
        """The surface as JSON, for stores."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_definition(cls, text: str) -> "Surface":
        """Return the surface of a definition from a store.

        Raises
        ------
        StoreError
            If this version cannot read it.
        """
        try:
            settings = json.loads(text)
            return cls.from_dict(without_unused_utility(settings) if isinstance(settings, dict) else settings)
        except (UnsolvableError, ValueError, TypeError) as error:
            raise StoreError(f"surface in the store cannot be read: {one_line(error)}") from error

    def successor(self, changed: "Surface", *, version: int) -> "Surface":
        """Return the updated surface, with the codes of all arms so far.

        Parameters
        ----------
        changed
            The surface with its new settings.
        version
            Version of the counts, at which guarantees that changed take effect.

        Raises
        ------
        InvalidInputError
            If the counts do not fit the updated surface, or an experiment that was changed does not.
        """
        if changed.name != self.name:
            raise InvalidInputError("name", f"must stay {self.name}", changed.name)
        if changed.n_positions != self.n_positions:
            raise InvalidInputError("n_positions", f"must stay {self.n_positions}", changed.n_positions)
        for names in ("items", "user_types"):
            before, after = getattr(self, names), getattr(changed, names)
            if after[: len(before)] != before:
                raise InvalidInputError(names, "must start with the present ones, in order", list(after))
        if changed.experiment is not None and changed.experiment != self.experiment:
            changed.experiment.check_surface(changed)
        is_kept = covered_items(changed) == covered_items(self) and changed.treatment == self.treatment
        since = 0 if not changed.guarantees else self.guarantees_since_version if is_kept else version
        if changed.guarantees_since_version != since:
            changed = replace(changed, guarantees_since_version=since)
        n_periods = len(self.experiment_periods)
        if changed.experiment_periods[:n_periods] != self.experiment_periods:
            return replace(changed, experiment_periods=self.experiment_periods)
        return changed


def without_unused_utility(settings: dict[str, Any]) -> dict[str, Any]:
    """Return stored settings without a utility that personalized treatment ignored in earlier versions.

    Examples
    --------
    >>> without_unused_utility({"treatment": "personalized", "utility": "nash"})
    {'treatment': 'personalized', 'utility': 'utilitarian'}
    """
    is_unused = settings.get("treatment", "personalized") == "personalized" and "utility" in settings
    return {**settings, "utility": Surface.utility} if is_unused else settings


def _check_names(what: str, given: Iterable[str], n_min: int, n_max: int) -> tuple[str, ...]:
    """Return distinct, printable names."""
    rule = f"must be {name_list_rule(n_min, n_max)}"
    unordered = isinstance(given, Mapping | AbstractSet)
    if isinstance(given, str) or unordered or not isinstance(given, Iterable):
        raise InvalidInputError(what, rule, given)
    names = tuple(given)
    if not n_min <= len(names) <= n_max:
        raise InvalidInputError(what, rule, len(names))
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= MAX_NAME_LENGTH:
            raise InvalidInputError(f"{what}[{number}]", f"must be {NAME_RULE}", name)
        if name in RESERVED_NAMES:
            raise InvalidInputError(f"{what}[{number}]", f"must not be {' or '.join(RESERVED_NAMES)}", name)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(what, "must all be different", name)
        seen.add(name)
    return names
