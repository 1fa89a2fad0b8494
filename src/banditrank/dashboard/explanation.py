"""Why a ranking was what it was: plain values, to be shown to people or encoded."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["open", "clicked", "not-clicked", "discarded", "forgotten"]


@dataclass(frozen=True, slots=True)
class OutcomeSoFar:
    """What became of a ranking.

    Attributes
    ----------
    state
        ``open`` while feedback is awaited; ``discarded`` if its window closed and it counts for nothing;
        ``forgotten`` if it is so old that it is only known as part of the counts.
    item, reward
        What was clicked, and what that was worth; None without a click.
    """

    state: State
    item: str | None = None
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class TypeBelief:
    """What was taken for true of a user type when the ranking was chosen."""

    user_type: str
    weight: float  # its share of arrivals under equal treatment; 1 if it alone counts
    position_preferences: list[float]  # first position first
    value: float  # of the ranking to users of this type


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item that was shown.

    Attributes
    ----------
    position
        1 is the first.
    item
        Its name.
    look
        How probably the position is looked at.
    mean
        How probably the item is clicked by who looks at it.
    value
        What it adds to the click rate there.

    All of them are weighed over the user types that count.
    """

    position: int
    item: str
    look: float
    mean: float
    value: float


@dataclass(frozen=True, slots=True)
class LeftOutItem:
    """An item that could have been shown.

    Attributes
    ----------
    item
        Its name.
    mean
        As for items that were shown.
    instead_of
        The item in whose place it would have done least harm, or most good.
    gain
        What that would have added to what is maximised; None if there is no telling.
    """

    item: str
    mean: float
    instead_of: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one ranking was made of, and why it came out as it did.

    Attributes
    ----------
    id, surface, user_type, items
        What was shown to whom, where.
    issued, expires
        When it was made, and when feedback was or will be no longer accepted, in seconds since 1970.
    revision, version, rounds
        Of the surface's definition, of the counts, and how many rankings these held.
    policy, treatment, utility
        As defined at the time; the utility is None under personalized treatment.
    reproduced
        Whether the same ranking comes out when it is made again from the same counts.
    outcome
        What became of it.
    basis
        ``draw``: the policy drew the world below, and this ranking was best in it. ``estimates``: the policy
        has rules of its own, and the world below is what the counts said at the time.
    type_entered
        Whether it mattered who asked; never under equal treatment.
    beliefs
        Of the user types that count: who asked, or everybody under equal treatment.
    shown, left_out
        Why these items, and not those that came nearest.
    reason
        The same in a sentence.
    """

    id: str
    surface: str
    user_type: str
    items: list[str]
    issued: float
    expires: float
    revision: int
    version: int
    rounds: int
    policy: str
    treatment: str
    utility: str | None
    reproduced: bool
    outcome: OutcomeSoFar
    basis: Literal["draw", "estimates"]
    type_entered: bool
    beliefs: list[TypeBelief]
    shown: list[PlacedItem]
    left_out: list[LeftOutItem]
    reason: str
