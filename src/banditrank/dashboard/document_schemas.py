"""What a dashboard is told of a surface: plain values, to be encoded.

Lists over user types are in the order of ``surface.types``, lists over items in that of ``surface.items``,
which are all there ever were; rankings are numbers of items, first position first. Values are clicks per
visit. ``t``, ``true`` and ``regret`` are there only if the truth is known: in a demo.
"""

from typing import Literal, NotRequired, TypeAlias, TypedDict

Why: TypeAlias = Literal["best", "order", "item"]
FeedbackState: TypeAlias = Literal["waiting", "unreported", "none", "clicked"]
Status: TypeAlias = Literal["ok", "warn", "bad"]


class SurfaceFacts(TypedDict):
    """What the surface is."""

    name: str
    treatment: str
    utility: str
    policy: str
    items: list[str]
    retired: list[str]
    types: list[str]
    n_positions: int
    window_s: float


class IntervalDocument(TypedDict):
    """An estimate, and the ends of its interval."""

    m: float
    lo: float
    hi: float


class PositionDocument(IntervalDocument):
    """How probably users of a type look at a position."""

    t: NotRequired[float]


class ItemDocument(IntervalDocument):
    """How probably users of a type click an item that they look at; n looks are expected, c clicks came."""

    t: NotRequired[float]
    n: float
    c: float


class RunnerUpDocument(TypedDict):
    """The ranking that comes next; delta is what it is worth more, lo and hi the ends of its interval.

    They are in clicks per visit, and under equal treatment in the utility. by_type is always in clicks.
    """

    ranking: list[int]
    delta: float
    lo: float
    hi: float
    by_type: list[float]


class ShownDocument(TypedDict):
    """The share of a ranking in the latest ones that this process gave out, and how many these are."""

    share: float
    of: int


class NowDocument(TypedDict):
    """What is best for a user type; under equal treatment for all, and values are lists over types.

    p_best is the chance that no ranking is better: a share of worlds that were drawn, and the interval that
    their number leaves open. shown is of the latest rankings for the same users.
    """

    ranking: list[int]
    value: float | list[float]
    lo: float | list[float]
    hi: float | list[float]
    p_best: IntervalDocument | None
    shown: ShownDocument | None
    runner_up: RunnerUpDocument | None


class RecentDocument(TypedDict):
    """A ranking that was given out by this process; why is how it compares with the best at that time.

    tried are its items that were not in the best; item is the one that was clicked.
    """

    id: str
    at: str
    type: int
    ranking: list[int]
    why: Why
    tried: list[int]
    feedback: FeedbackState
    item: int | None


class FairDocument(TypedDict):
    """What each user type gets under a treatment."""

    treatment: str
    utility: NotRequired[str]
    rankings: list[list[int]]
    value: list[float]
    lo: list[float]
    hi: list[float]
    true: NotRequired[list[float]]
    price: NotRequired[IntervalDocument | None]


class CheckDocument(TypedDict):
    """Something that may go wrong: its name, value, explanation, limit, status, and the last hour.

    The last hour is null where there was nothing to measure.
    """

    n: str
    v: str
    d: str
    l: str  # noqa: E741 - a word of the document, short like the others
    s: Status
    hour: list[float | None]


class HourDocument(TypedDict):
    """What came within the last hour, or since there was anything, of each type.

    other_item and other_order are shares of displays, null if there were none.
    """

    visits: list[int]
    clicks: list[float]
    other_item: float | None
    other_order: float | None


class DashboardDocument(TypedDict):
    """All that a dashboard shows of a surface but for the series.

    began is when the first visit was counted, about. optimum and random are what the best ranking and a
    random order give to each type, in truth where that is known; optimum_of_all says whether the best was
    found among all rankings, or is the best that is known.
    """

    surface: SurfaceFacts
    as_of: str
    counts_age_s: float
    version: int
    rounds: int
    level: float
    truth: bool
    began: str | None
    last_hour: HourDocument
    arrivals: list[float]
    optimum: list[IntervalDocument]
    optimum_of_all: bool
    random: list[float]
    now: list[NowDocument]
    recent: list[RecentDocument]
    positions: list[list[PositionDocument]]
    items: list[list[ItemDocument]]
    fair: list[FairDocument]
    displays: list[list[list[int]]]
    health: list[CheckDocument]


class NoteDocument(TypedDict):
    """Something that happened."""

    at: str
    t: str


class SeriesDocument(TypedDict):
    """How a surface fared over time, in buckets of the same width that are closed, oldest first.

    Clicks are weighed with what they were worth; other_item and other_order are shares of displays, null
    where there were none to compare; regret is what was given up since the first bucket: clicks, or under
    equal treatment the utility.
    """

    start: str
    bucket_s: float
    visits: list[list[int]]
    clicks: list[list[float]]
    other_item: list[float | None]
    other_order: list[float | None]
    regret: NotRequired[list[float]]
    events: list[NoteDocument]
