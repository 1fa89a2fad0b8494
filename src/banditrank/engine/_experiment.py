"""Definition of an experiment: arms that share the visits of a surface with its policy.

A visitor's arm is a function of a keyed hash of the visitor id, a point in [0, 1). The key differs between
surfaces and between experiments, so that their assignments are independent.

Each arm has a fixed starting point, 0, 1/2, 1/4, 3/4, 1/8, … in the order of the arms, and covers an interval
of the length of its share from there on. What no arm covers belongs to the surface's policy. A share that
grows therefore takes visitors from the policy, and leaves those of the other arms where they are, as long as
the interval ends before the starting point of another arm: always with one arm, up to 1/2 each with two, up
to 1/4 each with four. The excess beyond it takes the next points that are free. If another arm grows into
these, the visitors there move on: at most as many as the other arm gains.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from banditrank._checks import check_number
from banditrank.engine._guarantees import active_guarantees
from banditrank.engine._served_policies import SERVED_NAMES, served_policy
from banditrank.engine._surface_name import SURFACE_NAME, SURFACE_NAME_RULE
from banditrank.errors import InvalidInputError, UnknownNameError
from banditrank.policies._base import CompiledPolicy

if TYPE_CHECKING:
    from banditrank.engine._surface import Surface

MAX_ARMS = 15
"""Maximum number of arms beside the surface's policy."""

MIN_SHARE = 1e-9
"""Minimum share of an arm that is not stopped: results weight visits by 1 / share."""

MAX_VISITOR_LENGTH = 200
POLICY_ARM = "policy"
"""Name of the arm that shows the rankings of the surface's policy; its index is 0."""

FIXED = "fixed"
"""Name of the policy that shows a fixed order of items."""

_NAME_RULE = f"must be {SURFACE_NAME_RULE}"
_POINT_BITS = 53  # as a float has
_ROUNDING = 1e-9  # shares such as 0.1 are rounded: three of them plus 0.7 must be 1


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm of an experiment.

    Parameters
    ----------
    name
        Lower-case letters, digits, dots, dashes and underscores; not ``policy``.
    share
        Share of the visits, from 1e-9 to 1. With 0 the arm is stopped and keeps its place among the arms.
    policy
        ``random``, ``fixed``, or another policy that can serve.
    order
        For ``fixed``, the items in the order in which they are shown; the first that are not retired fill the
        positions.
    is_learned_from
        Whether the arm's visits are added to the counts that the surface's policy learns from.

    Raises
    ------
    InvalidInputError
        If a setting breaks its rule.

    Examples
    --------
    >>> Arm("hold-out", share=0.05, policy="random").is_learned_from
    False
    >>> Arm("editors", share=0.1, policy="fixed", order=["b", "a"]).order
    ('b', 'a')
    """

    name: str
    share: float
    policy: str = "random"
    order: Sequence[str] = ()
    is_learned_from: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(SURFACE_NAME, self.name):
            raise InvalidInputError("arms.name", _NAME_RULE, self.name)
        if self.name == POLICY_ARM:
            raise InvalidInputError("arms.name", "must not be that of the surface's own policy", self.name)
        object.__setattr__(self, "share", check_number("arms.share", self.share, 0.0, 1.0))
        if 0 < self.share < MIN_SHARE:
            rule = f"must be 0, or a number from {MIN_SHARE:g} to 1"
            raise InvalidInputError("arms.share", rule, self.share)
        if self.policy != FIXED:
            if self.policy not in SERVED_NAMES:
                raise UnknownNameError("arms.policy", self.policy, (FIXED, *SERVED_NAMES))
            if self.order:
                raise InvalidInputError(
                    "arms.order", f"must be left out for policy {self.policy}", self.order
                )
        object.__setattr__(self, "order", self._checked_order())
        if not isinstance(self.is_learned_from, bool):
            raise InvalidInputError("arms.is_learned_from", "must be true or false", self.is_learned_from)

    @classmethod
    def from_dict(cls, values: dict[str, Any], number: int) -> "Arm":
        """Return the arm with settings as in `SurfaceExperiment.to_dict`.

        Parameters
        ----------
        values
            The settings.
        number
            Number of the arm in its experiment, from 0, which errors name.

        Raises
        ------
        InvalidInputError
            If a setting is unknown, missing, or breaks its rule.
        """
        try:
            return cls(**_known_settings("arms", values, cls, ("name", "share")))
        except InvalidInputError as error:
            field = f"experiment.arms[{number}]{error.field.removeprefix('arms')}"
            raise InvalidInputError(field, error.rule, error.value) from None

    def _checked_order(self) -> tuple[str, ...]:
        if not isinstance(self.order, list | tuple) or not all(isinstance(item, str) for item in self.order):
            raise InvalidInputError("arms.order", "must be a list of items", self.order)
        if self.policy == FIXED and not self.order:
            raise InvalidInputError("arms.order", f"must be given for policy {FIXED}", self.order)
        seen: set[str] = set()
        for item in self.order:
            if item in seen:
                raise InvalidInputError("arms.order", "must have different items", item)
            seen.add(item)
        return tuple(self.order)


@dataclass(frozen=True, slots=True)
class SurfaceExperiment:
    """Arms that share the visits of a surface with its policy.

    Parameters
    ----------
    name
        Lower-case letters, digits, dots, dashes and underscores. Visitors are assigned anew under a new name.
    arms
        Up to 15 arms. New ones are appended, and stopped ones get the share 0, because the place of an arm
        determines its visitors.
    level
        Confidence level of the report, from 0.5 to 0.999.

    Raises
    ------
    InvalidInputError
        If a setting breaks its rule, or no share is left for the surface's policy.

    Examples
    --------
    >>> arms = [Arm("hold-out", share=0.05), Arm("old", share=0.2, policy="ucb-rank")]
    >>> experiment = SurfaceExperiment("autumn", arms)
    >>> experiment.shares
    (0.75, 0.05, 0.2)
    >>> salt = experiment.salt("home")
    >>> [experiment.arm_names[assign(visitor, salt, experiment.arms)] for visitor in ("ann", "bob", "eve")]
    ['policy', 'policy', 'policy']
    """

    name: str
    arms: Sequence[Arm]
    level: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(SURFACE_NAME, self.name):
            raise InvalidInputError("experiment.name", _NAME_RULE, self.name)
        if not isinstance(self.arms, list | tuple) or not all(isinstance(arm, Arm) for arm in self.arms):
            raise InvalidInputError("arms", "must be a list of arms", self.arms)
        if not 1 <= len(self.arms) <= MAX_ARMS:
            raise InvalidInputError("arms", f"must be 1 to {MAX_ARMS}", len(self.arms))
        object.__setattr__(self, "arms", tuple(self.arms))
        names = self.arm_names
        for name in names:
            if names.count(name) > 1:
                raise InvalidInputError("arms.name", "must all be different", name)
        if self.shares[0] <= _ROUNDING:
            total = sum(arm.share for arm in self.arms)
            raise InvalidInputError("arms.share", "must leave a share for the surface's policy", total)
        object.__setattr__(self, "level", check_number("level", self.level, 0.5, 0.999))

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of all arms, the surface's policy first."""
        return (POLICY_ARM, *(arm.name for arm in self.arms))

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of all arms, the surface's policy first."""
        shares = tuple(arm.share for arm in self.arms)
        return (round(1 - sum(shares), 12), *shares)

    def salt(self, surface: str) -> bytes:
        """Return the key of the assignment on a surface; it depends on the names of both."""
        names = b"".join(len(name.encode()).to_bytes(4) + name.encode() for name in (surface, self.name))
        return hashlib.blake2b(names, digest_size=32).digest()

    def check_surface(self, surface: "Surface") -> None:
        """Check that the arms can be shown on a surface.

        Raises
        ------
        InvalidInputError
            If a fixed order has unknown or too few items, or a policy does not support the treatment.
        UnsolvableError
            If a policy cannot rank a surface of this size.
        """
        self.check_names(surface)
        active = set(surface.active_items)
        for number, arm in enumerate(self.arms):
            n_active = sum(item in active for item in arm.order)
            if arm.policy == FIXED and arm.share > 0 and n_active < surface.n_positions:
                rule = f"must have at least {surface.n_positions} items that are not retired"
                raise InvalidInputError(f"experiment.arms[{number}].order", rule, n_active)

    def check_names(self, surface: "Surface") -> None:
        """Check that a surface has the items of fixed orders, retired or not, and can use the policies.

        Raises
        ------
        InvalidInputError, UnsolvableError
            As for `check_surface`.
        """
        known = set(surface.items)
        for number, arm in enumerate(self.arms):
            if arm.policy != FIXED:
                policy = arm_policy(arm, surface)
                policy.kernel(n_items=len(surface.items), n_positions=surface.n_positions)
            for item in arm.order:
                if item not in known:
                    raise UnknownNameError(f"experiment.arms[{number}].order", item, surface.items)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as JSON-compatible values."""
        arms = [asdict(arm) | {"order": list(arm.order)} for arm in self.arms]
        return {"name": self.name, "arms": arms, "level": self.level}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "SurfaceExperiment":
        """Return the experiment with settings as from `to_dict`.

        Raises
        ------
        InvalidInputError
            If a setting is unknown, missing, or breaks its rule.
        """
        checked = _known_settings("experiment", values, cls, ("name", "arms"))
        if not isinstance(checked["arms"], list | tuple):
            raise InvalidInputError("experiment.arms", "must be a list of arms", checked["arms"])
        arms = [Arm.from_dict(arm, number) for number, arm in enumerate(checked["arms"])]
        try:
            return cls(**checked | {"arms": arms})
        except InvalidInputError as error:
            field = f"experiment.{error.field.removeprefix('experiment.')}"
            raise InvalidInputError(field, error.rule, error.value) from None


def arm_policy(arm: Arm, surface: "Surface") -> CompiledPolicy:
    """Return the policy of an arm, for the treatment, the utility and the click model of a surface.

    Raises
    ------
    InvalidInputError
        If the policy does not support the treatment.
    """
    return served_policy(
        arm.policy,
        treatment=surface.treatment,
        utility=surface.utility,
        coefficient=None,
        click_model=surface.click_model,
        guarantees=active_guarantees(surface),
    )


def check_visitor(visitor: str) -> None:
    """Check a visitor id.

    Raises
    ------
    InvalidInputError
        If it is not 1 to 200 characters.
    """
    if not isinstance(visitor, str) or not 1 <= len(visitor) <= MAX_VISITOR_LENGTH:
        raise InvalidInputError("visitor", f"must be 1 to {MAX_VISITOR_LENGTH} characters", visitor)


def assign(visitor: str, salt: bytes, arms: Sequence[Arm]) -> int:
    """Return the arm of a visitor: 0 for the surface's policy, or 1 + the index in ``arms``.

    Parameters
    ----------
    visitor
        The visitor id; the same id is always assigned to the same arm, as long as the shares stay.
    salt
        Key of the hash, as from `SurfaceExperiment.salt`; assignments under different keys are independent.
    arms
        The arms beside the surface's policy.

    Raises
    ------
    InvalidInputError
        If the visitor id is not 1 to 200 characters.

    Examples
    --------
    >>> [assign(f"visitor-{n}", b"salt", [Arm("hold-out", 0.5)]) for n in range(8)]
    [1, 1, 0, 1, 0, 0, 1, 0]
    """
    check_visitor(visitor)
    keyed_hash = hashlib.blake2b(visitor.encode("utf-8", "surrogatepass"), key=salt, digest_size=8)
    return arm_at(random_point(lambda _: keyed_hash.digest()), arms)


def random_point(random_bytes: Callable[[int], bytes]) -> float:
    """Return a point that is uniformly distributed in [0, 1), for `arm_at`."""
    bits: int = int.from_bytes(random_bytes(8)) >> (64 - _POINT_BITS)
    return bits / 2.0**_POINT_BITS


def arm_at(point: float, arms: Sequence[Arm]) -> int:
    """Return the arm that covers a point: 0 for the surface's policy, or 1 + the index in ``arms``.

    Visits without a visitor id are assigned by a point that is uniformly distributed in [0, 1).

    Examples
    --------
    >>> [arm_at(point, [Arm("hold-out", 0.05), Arm("old", 0.2)]) for point in (0.0, 0.05, 0.5, 0.7)]
    [1, 0, 2, 0]
    """
    starts, owners = _cover(tuple(arm.share for arm in arms))
    return owners[bisect_right(starts, point) - 1]


@lru_cache(maxsize=1024)
def _cover(shares: tuple[float, ...]) -> tuple[list[float], list[int]]:
    """Return the starts of intervals that cover [0, 1), and the arm of each."""
    anchors = [int(f"{n:04b}"[::-1], 2) / 16 for n in range(len(shares))]  # 0, 1/2, 1/4, 3/4, 1/8, …
    following = dict(pairwise([*sorted(anchors), 1.0]))
    covered: list[tuple[float, float, int]] = []  # start, end, arm
    excess: list[tuple[int, float]] = []
    for arm, (share, anchor) in enumerate(zip(shares, anchors, strict=True), start=1):
        end = min(anchor + share, following[anchor])
        covered.append((anchor, end, arm))
        excess.append((arm, share - (end - anchor)))
    for arm, share in excess:
        covered += _next_free(anchors[arm - 1], share, arm, covered)
    starts, owners = [0.0], [0]
    for start, end, arm in sorted(one for one in covered if one[1] > one[0]):
        starts += [start, end]
        owners += [arm, 0]
    return starts, owners


def _next_free(
    anchor: float, share: float, arm: int, covered: Iterable[tuple[float, float, int]]
) -> list[tuple[float, float, int]]:
    """Return free intervals of a total length, the next ones from an anchor on."""
    taken = sorted((start, end) for start, end, _ in covered if end > start)
    gaps = [
        (end, start) for (_, end), (start, _) in pairwise([(0.0, 0.0), *taken, (1.0, 1.0)]) if start > end
    ]
    found = []
    for start, end in sorted(gaps, key=lambda gap: (gap[0] < anchor, gap)):
        if share <= _ROUNDING:
            break
        length = min(share, end - start)
        found.append((start, start + length, arm))
        share -= length
    return found


def _known_settings(field: str, values: object, kind: type, required: Sequence[str]) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise InvalidInputError(field, "must be an object with settings", values)
    known = [one.name for one in fields(kind)]
    for key in values:
        if key not in known:
            raise UnknownNameError(field, key, known)
    for key in required:
        if key not in values:
            raise InvalidInputError(field, f"must have {key}", sorted(values))
    return dict(values)
