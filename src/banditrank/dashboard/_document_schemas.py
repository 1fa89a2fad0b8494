"""Schemas of the dashboard's documents.

Lists over user types are in the order of ``surface.user_types``. Lists over items are in the order of
``surface.items``, which includes retired ones. Rankings are item numbers in order of positions. Values are
clicks per visit. Times are formatted by `format_timestamp`. ``true_value``, ``true_values`` and ``regret``
are present only if the problem is known: in a demo.
"""

from datetime import UTC, datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

RankingComparison: TypeAlias = Literal["best", "order", "item"]
FeedbackState: TypeAlias = Literal["pending", "unreported", "not-clicked", "clicked"]
CompilingState: TypeAlias = Literal["this-surface", "another-surface"]
HealthStatus: TypeAlias = Literal["ok", "warn", "bad"]


def format_timestamp(seconds: float) -> str:
    """Return a time in seconds since 1970 in ISO 8601 format.

    Examples
    --------
    >>> format_timestamp(1e9)
    '2001-09-09T01:46:40.000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SurfaceDocument(TypedDict):
    """Definition of the surface; experiment is the name of its experiment."""

    name: str
    treatment: str
    utility: str
    policy: str
    click_model: str
    items: list[str]
    retired: list[str]
    user_types: list[str]
    n_positions: int
    attribution_seconds: float
    experiment: str | None


class IntervalDocument(TypedDict):
    """An estimate and the ends of its interval."""

    estimate: float
    low: float
    high: float


class PositionDocument(IntervalDocument):
    """Probability that users of a type look at a position.

    If clicks are position-based, it is relative to the most looked-at position.
    """

    true_value: NotRequired[float]


class ItemDocument(TypedDict):
    """Probability that users of a type click an item that they look at.

    estimate is null for an item that the type was never shown; low and high are the ends of the interval.
    expected_looks is the expected number of looks, clicks the sum of rewards.
    """

    estimate: float | None
    low: float
    high: float
    true_value: NotRequired[float]
    expected_looks: float
    clicks: float


class RunnerUpDocument(TypedDict):
    """The second-best ranking, and the difference of its value from that of the best one, with an interval.

    The difference is in clicks per visit, under equal treatment in the collective utility; by_user_type is
    always in clicks per visit.
    """

    ranking: list[int]
    difference: float
    low: float
    high: float
    by_user_type: list[float]


class ShownShareDocument(TypedDict):
    """Share of a ranking in the latest impressions of this process, and the number of these."""

    share: float
    n_rankings: int


class BestRankingDocument(TypedDict):
    """The best ranking for a user type; under equal treatment for all, with lists of values over user types.

    probability_best is the probability that no ranking is better: the share of posterior samples in which
    none is, with the interval that their number allows. loss is what the ranking loses against the best one
    of each sample, in clicks per visit: the expected loss, and the interval of the loss. shown is among the
    latest impressions of these users. Under a lottery there is one document for each of its rankings, the
    most probable first, with its probability; the values are those of the lottery.
    """

    ranking: list[int]
    value: float | list[float]
    low: float | list[float]
    high: float | list[float]
    probability_best: IntervalDocument | None
    loss: IntervalDocument | None
    shown: ShownShareDocument | None
    runner_up: RunnerUpDocument | None
    probability: NotRequired[float]


class ImpressionDocument(TypedDict):
    """An impression that this process issued.

    reason compares it with the best ranking at that time, null if that was not known, explored_items are its
    items that were not in that one, and clicked are the clicked items. arm is the arm of the surface's
    experiment, if there was one.
    """

    id: str
    at: str
    user_type: int
    ranking: list[int]
    reason: RankingComparison | None
    explored_items: list[int]
    feedback: FeedbackState
    clicked: list[int]
    arm: NotRequired[str]


class TreatmentDocument(TypedDict):
    """Best rankings under a treatment, and their value to each user type; of a lottery with probabilities."""

    treatment: str
    utility: NotRequired[str]
    rankings: list[list[int]]
    value: list[float]
    low: list[float]
    high: list[float]
    true_values: NotRequired[list[float]]
    price: NotRequired[IntervalDocument | None]
    probabilities: NotRequired[list[float]]


class GuaranteeDocument(TypedDict):
    """A guarantee of the surface: its price, and what was realised, with an interval.

    expected and price are null if the guarantees cannot all be kept; what was realised is null without
    visits.
    """

    name: str
    level: float
    expected: float | None
    price: float | None
    realised: float | None
    low: float | None
    high: float | None
    is_kept: bool | None


class LotteryDocument(TypedDict):
    """The best lottery over rankings by the estimates, and its gain over one fixed ranking in a sentence.

    value is the expected value to each user type. conflict says why the guarantees cannot all be kept; the
    lottery then keeps none.
    """

    rankings: list[list[int]]
    probabilities: list[float]
    user_types: list[str | None]  # that each ranking is for; None for all
    value: list[float]
    summary: str
    conflict: str | None
    guarantees: list[GuaranteeDocument]


class HealthCheckDocument(TypedDict):
    """A health check: name, value, description, limit, status, and values over the last hour.

    Values over the last hour are null where nothing was measured.
    """

    name: str
    value: str
    description: str
    limit: str
    status: HealthStatus
    last_hour: list[float | None]


class LastHourDocument(TypedDict):
    """Visits and clicks of each user type within the last hour.

    other_item and other_order are shares of displays, null without displays.
    """

    visits: list[int]
    clicks: list[float]
    other_item: float | None
    other_order: float | None


class EstimatesBasisDocument(TypedDict):
    """The counts that estimates were computed from: when they were the latest, their version and rounds."""

    at: str
    version: int
    rounds: int


class CountsDocument(TypedDict):
    """What is known of a surface at once, without estimates.

    version and rounds are those of the latest counts, and estimated_from is the basis of the latest
    estimates, null if there are none of the present definition yet. started_at is the start of the first
    bucket of the time series. compiling is the surface whose code the service compiles, and
    compiling_seconds for how long it has; null if it compiles none.
    """

    surface: SurfaceDocument
    as_of: str
    compiling: CompilingState | None
    compiling_seconds: float | None
    estimated_from: EstimatesBasisDocument | None
    counts_age_seconds: float
    version: int
    rounds: int
    level: float
    has_true_values: bool
    started_at: str | None
    last_hour: LastHourDocument
    latest_rankings: list[ImpressionDocument]
    health: list[HealthCheckDocument]


class EstimatesDocument(TypedDict):
    """What is computed from the counts, null until it is.

    optimum and random are the values of the best ranking and of a random order to each user type, by the
    problem where it is known. is_optimum_exact is whether the optimum is over all rankings; otherwise it is
    the value of the best known one.
    """

    arrival_rates: list[float] | None
    optimum: list[IntervalDocument] | None
    is_optimum_exact: bool | None
    random: list[float] | None
    best_rankings: list[BestRankingDocument] | None
    positions: list[list[PositionDocument]] | None
    items: list[list[ItemDocument]] | None
    treatments: list[TreatmentDocument] | None
    lottery: LotteryDocument | None
    displays: list[list[list[int]]] | None


class DashboardDocument(CountsDocument, EstimatesDocument):
    """All data of a surface's dashboard except the time series: what is known at once, and estimates."""


class AnnotationDocument(TypedDict):
    """An annotation of the time series."""

    at: str
    text: str


class SeriesDocument(TypedDict):
    """Time series of a surface in closed buckets of equal width, oldest first.

    Clicks are weighted by their rewards. other_item and other_order are shares of displays, null without
    compared displays. regret is cumulative since the first bucket: in clicks, under equal treatment in the
    utility.
    """

    start: str
    bucket_seconds: float
    visits: list[list[int]]
    clicks: list[list[float]]
    other_item: list[float | None]
    other_order: list[float | None]
    regret: NotRequired[list[float]]
    events: list[AnnotationDocument]
